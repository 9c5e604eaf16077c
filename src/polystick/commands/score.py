"""`polystick score`: how well a fitted model foretells other counts."""

import json

import click

from polystick.commands.fit import READING, TEXTS, CommandWithColumns
from polystick.commands.speech import note, say

_METHODS = click.Choice(["completion", "held-out"])
_GROUPS = click.Choice(["known", "new", "none"])


def _reading(function):
    for option in reversed((*READING, TEXTS[0])):
        function = option(function)
    return function


@click.command(cls=CommandWithColumns, short_help="Score counts by a fitted model.")
@click.argument("run", type=click.Path(file_okay=False))
@click.argument("file", type=click.Path())
@click.option("--method", type=_METHODS, help="For topics: show the model half of each document's words "
              "and score the others, or score whole documents. [default: completion]")  # fmt: skip
@click.option("--groups", type=_GROUPS, help="For regressions with groups: rows are in groups of the fit, in "
              "new ones of their kind, or in typical ones. [default: known]")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), help="[default: all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@_reading
def score(run, file, method, groups, threads, as_json, **given):
    """Print the log likelihood per count (in nats) of the counts in FILE, and the perplexity.

    FILE is read like that of the fit, and must have its categories. The multinomial coefficient is left
    out, so the numbers compare with a likelihood per word.

    Example: polystick score run test.csv
    """
    from polystick.commands import models, runs
    from polystick.commands.options import refuse_idle

    kind, options, names, estimator, _ = runs.open_run(run, threads)
    if method is not None and kind != "topics":
        raise ValueError(f"--method is for topics; {run} holds a run of {kind}")
    if groups is not None and not (kind == "regression" and options.get("groups")):
        raise ValueError(f"--groups is for regressions with groups; {run} holds another run")
    if given["text"] is not None and kind != "topics":
        raise ValueError(f"--text is for topics; {run} holds a run of {kind}")
    chosen = {name: value for name, value in given.items() if value is not None}
    reading = {**options, **chosen}
    refuse_idle(file, given, reading)
    data = models.read_data(kind, file, reading, names)
    for sentence in data.notes:
        note(sentence)
    if kind == "topics":
        method = method or "completion"
    extras = {} if method is None else {"method": method.replace("-", "_")}
    if groups is not None:
        extras["groups"] = groups
    _report(
        float(estimator.score(*data.arguments, **data.about, **extras)), kind, data, method, as_json
    )


def _report(value, kind, data, method, as_json):
    import numpy as np

    found = {
        "model": kind,
        "rows": data.n_rows,
        "counts": data.n_counts,
        "log_likelihood_per_count": None if np.isnan(value) else value,
        "perplexity": None if np.isnan(value) else float(np.exp(-value)),
    }
    if method is not None:
        found["method"] = method
    if as_json:
        say(json.dumps(found))
        return
    if found["perplexity"] is None:
        say(f"{data.n_rows} rows have no counts that could be scored")
        return
    half = (
        "; half of each document's are shown, the others scored" if method == "completion" else ""
    )
    say(f"{data.n_rows} rows, {data.n_counts} counts{half}")
    say(f"log likelihood per count  {value:.4f} nats")
    say(f"perplexity                {found['perplexity']:.2f}")
