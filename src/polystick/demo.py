"""The demonstration: which names rise and fall together, with uncertainty, in under a minute."""

import sys

import click

from polystick import CorrelatedMultinomial, Gibbs, datasets, plots


def run(folder, *, quick=False):
    """Fit, print a table, write a picture."""
    import matplotlib  # before the work, which would be lost without it

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    n_names, step, n_draws = (8, 9, 50) if quick else (30, 3, 500)
    counts = datasets.load_names("M", n_names=n_names, years=range(1960, 2014, step))
    click.echo(f"{len(counts)} rows (state and year) of counts over {n_names} boys' names")
    click.echo("compiling kernels (once) ...", err=True)
    inference = Gibbs(n_draws=n_draws, n_burn=n_draws // 2, n_chains=4)
    in_terminal = sys.stderr.isatty()
    model = CorrelatedMultinomial(inference=inference, random_state=1, progress=in_terminal)
    model.fit(counts)
    click.echo(model.posterior_.summary())
    click.echo(model.summary().round(3).to_string())
    click.echo(f"picture: {_picture(model, folder)}")


def _picture(model, folder):
    axes = plots.correlation(model.category_correlation().mean)
    axes.set_title("Boys' names in the USA, 1960-2013:\nwhose shares rise and fall together")
    path = folder / "names_correlation.png"
    axes.figure.savefig(path, dpi=120)
    return path
