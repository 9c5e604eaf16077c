"""What a command says, whatever the names in it hold."""

import click

from polystick.printable import printable

__all__ = ["note", "say"]


def say(text, err=False):
    """Print to standard output, or to standard error."""
    click.echo(printable(text), err=err)


def note(text):
    """Print a note to standard error."""
    say(f"Note: {text}", err=True)
