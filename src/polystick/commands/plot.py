"""`polystick plot`: pictures of what a model has learned."""

import json
from pathlib import Path

import click

from polystick.commands.places import FOLDER
from polystick.commands.speech import say


@click.command(short_help="Draw the pictures that suit a fitted model.")
@click.argument("run", type=click.Path(file_okay=False))
@click.option("--out", required=True, metavar="FOLDER", type=FOLDER,
              help="Folder for the pictures.")  # fmt: skip
@click.option("--format", "ending", default="png", type=click.Choice(["png", "svg", "pdf"]),
              show_default=True)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the names of the files as JSON.")
def plot(run, out, ending, as_json):
    """Draw the pictures that suit the model.

    \b
    topics       a graph of the topics, their sizes, their correlations
    multinomial  shares, and correlations of their logarithms; with --link softmax
                 which categories go together
    regression   what each covariate does: curves along numbers, else changes
    gp           probabilities along one input, or maps over two
    lds          probabilities along the first sequence
    and the trace of the log likelihood, where the model was sampled

    Example: polystick plot run --out pictures
    """  # noqa: D301
    plt = pyplot()
    from polystick.commands import pictures, runs

    opened, folder = runs.open_run(run), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    drawn = [*pictures.PICTURES[opened.kind](opened), *pictures.trace_of(opened)]
    for name, figure in drawn:
        paths.append(str(folder / f"{name}.{ending}"))
        figure.savefig(paths[-1], dpi=120)
        plt.close(figure)
    say(json.dumps({"pictures": paths}) if as_json else "\n".join(paths))


def pyplot():
    """Return matplotlib.pyplot, made to draw into files."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install polystick[plot]") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
