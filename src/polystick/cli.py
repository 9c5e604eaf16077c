"""The command line."""

from pathlib import Path

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="polystick")
def main():
    """Counts over categories that depend on each other."""


@main.command()
@click.option(
    "--out", default="demo", type=click.Path(file_okay=False), help="Folder for the picture."
)
@click.option("--quick", is_flag=True, help="Fewer names, years and draws: seconds, not a minute.")
def demo(out, quick):
    """Fit boys' names by state and year (bundled), print a table and draw their correlations.

    Example: polystick demo --out demo
    """
    from polystick.demo import run

    run(Path(out), quick=quick)


if __name__ == "__main__":
    main()
