"""`polystick show`: tables of what a model has learned."""

import json

import click

from polystick.commands.speech import note, say


@click.command(short_help="Print tables of what a model has learned.")
@click.argument("run", type=click.Path(file_okay=False))
@click.option("--words", default=8, type=click.IntRange(min=1), show_default=True,
              help="Words of each topic.")  # fmt: skip
@click.option("--by", type=click.Choice(["probability", "relevance", "frex"]),
              help="Which words of topics: the likeliest, those less likely elsewhere, or those that are "
              "frequent and exclusive. [default: probability]")  # fmt: skip
@click.option("--rows", default=10, type=click.IntRange(min=1), show_default=True,
              help="Most rows of the other tables.")  # fmt: skip
@click.option("--csv", type=click.Path(dir_okay=False), metavar="FILE",
              help="Also write the shares of topics in each document to a file.")  # fmt: skip
@click.option("--effects", metavar="COLUMN",
              help="Of topics with a --prevalence, or of a regression: how each one's share changes with "
              "this column, on average, in place of the other tables.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
def show(run, words, by, rows, csv, effects, as_json):
    """Print tables: topics and which of them go together, or the summary of another model.

    Intervals hold 90 % of the posterior. Less than 5 topics have correlations of log shares instead, which
    are not zero for independent topics: docs/topics.md says how to read both. Of rows of counts, fitted with
    --link softmax, there are the categories that are known to go together; of a regression, by how much the
    probabilities change with each covariate, on average, and what varies between groups and rows beyond.

    \b
    Example: polystick show run --words 6 --by frex --csv shares.csv
             polystick show run --effects party
    """  # noqa: D301
    from polystick.commands import diagnosis, runs, views

    opened = runs.open_run(run)
    if csv is not None:
        views.write_shares(opened, csv)
    if by is not None and opened.kind != "topics":
        raise ValueError(f"--by needs a run of topics; this is one of {opened.kind}; leave it out")
    tables = (
        views.TABLES[opened.kind](opened, words, rows, *([] if by is None else [by]))
        if effects is None
        else views.effect_tables(opened, effects)
    )
    summary = opened.estimator.posterior_.summary()
    if as_json:
        plain = {title: json.loads(t.to_json(orient="records")) for title, t in tables.items()}
        found = diagnosis.diagnosis_of(opened.estimator.posterior_)
        said = {"model": opened.kind, "summary": summary, **found, "tables": plain}
        say(json.dumps(said))
        return
    say(summary)
    trouble = diagnosis.trouble_of(opened.estimator.posterior_)
    if trouble:
        note(trouble)
    for title, table in tables.items():
        say(f"\n{title}\n{views.text_of(table)}")
