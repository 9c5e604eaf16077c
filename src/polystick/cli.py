"""The command line: commands are loaded when they are asked for, and failures are said in a sentence."""

import importlib
import warnings
from pathlib import Path

import click

from polystick.printable import printable

# name -> module with a command of that name
COMMANDS = {
    "fit": "polystick.commands.fit",
    "pack": "polystick.commands.pack",
    "plot": "polystick.commands.plot",
    "report": "polystick.commands.report",
    "reproduce": "polystick.commands.reproduce",
    "score": "polystick.commands.score",
    "show": "polystick.commands.show",
    "warmup": "polystick.commands.warmup",
}
FAILURES = (ValueError, TypeError, RuntimeError, OSError, ImportError, MemoryError, ArithmeticError)
# what the library calls by its Python name, and the option that means the same
_OPTIONS = {
    "pass resume=True": "add --resume",
    "resume=True": "--resume",
    "inference=MeanField()": "--mean-field",
    "inference=MeanField(...)": "--mean-field",
    "n_topics": "--topics",
    ", or give columns of numbers and no formula": "",
    'groups="known"': "--groups known",
    'groups="new"': "--groups new",
    'groups="none"': "--groups none",
    'overdispersion=None or "auto"': "--overdispersion none, or leave the option out",
}


_FIRST_STEPS = """\
Counts over categories that depend on each other: words in documents, names by place and year,
species in samples.

  polystick demo                              what presidents speak about: topics of bundled speeches
  polystick fit FILE                          what is in your file, and what could be learned from it
  polystick fit MODEL FILE                    what that would do, and how long it would take
  polystick fit MODEL FILE --out RUN          learn it: topics, multinomial, regression, gp or lds
  polystick show RUN                          tables of what was learned
  polystick plot RUN --out pictures           pictures of it
  polystick report RUN --out page.html        one page of all of it, to click on
  polystick score RUN OTHER_FILE              how well it predicts other counts

polystick --help has all commands, and polystick COMMAND --help their options."""


class Commands(click.Group):
    """A group that loads a command when it is asked for."""

    def list_commands(self, ctx):
        return sorted([*self.commands, *COMMANDS])

    def get_command(self, ctx, cmd_name):
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        return getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)

    def invoke(self, ctx):
        """Run a command; a failure becomes a sentence, and the exit code 1."""
        with warnings.catch_warnings():
            _speak_of_warnings()
            try:
                return super().invoke(ctx)
            except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
                raise
            except (*FAILURES, KeyboardInterrupt) as error:
                if ctx.params["traceback"]:
                    raise
                raise click.ClickException(_sentence(error)) from error


@click.group(cls=Commands, invoke_without_command=True,
             context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip
@click.version_option(package_name="polystick")
@click.option("--traceback", is_flag=True, help="Show where in the program a failure came from.")
@click.pass_context
def main(ctx, traceback):
    """Counts over categories that depend on each other.

    Results go to standard output, progress and notes to standard error. Exit codes: 0 fine, 1 a failure
    (said in one sentence), 2 a command line that makes no sense.

    Example: polystick demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(_FIRST_STEPS)


@main.command(short_help="What presidents speak about: topics of bundled speeches.")
@click.option("--out", default="demo", type=click.Path(file_okay=False), show_default=True,
              help="Folder for the picture and the page.")  # fmt: skip
@click.option("--quick", is_flag=True, help="A part of the speeches and few draws: seconds.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
def demo(out, quick, is_opened):
    """Learn what presidents speak about (bundled data): topics, and correlations of their log shares.

    Example: polystick demo --out demo
    """
    from polystick.demo import run

    run(Path(out), quick=quick, is_opened=is_opened)


def _speak_of_warnings():
    for category in (RuntimeWarning, UserWarning):
        warnings.simplefilter("always", category)

    def say(message, category, filename, lineno, file=None, line=None):
        click.echo(f"Warning: {_in_options(printable(message))}", err=True)

    warnings.showwarning = say


def _sentence(error):
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{printable(error.filename)}: {error.strerror}"
    said = _in_options(printable(" ".join(str(error).split())))
    return said or type(error).__name__


def _in_options(text):
    for name, option in _OPTIONS.items():
        text = text.replace(name, option)
    return text
