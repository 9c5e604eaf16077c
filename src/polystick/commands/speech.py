"""What a command says, whatever the names in it hold."""

import click

from polystick.printable import printable

__all__ = ["note", "say"]


def say(text):
    """Print to standard output."""
    click.echo(printable(text))


def note(text):
    """Print a note to standard error."""
    click.echo(f"Note: {printable(text)}", err=True)
