"""`polystick report`: what a model has learned, as one page."""

from collections import namedtuple

import click

from polystick.commands.fit import READING, TEXTS, CommandWithColumns
from polystick.commands.speech import say

# associations of all pairs of topics, as tables of topics by topics
Matrices = namedtuple("Matrices", ["mean", "lower", "upper"])


def _reading(function):
    for option in reversed((*READING, TEXTS[0])):
        function = option(function)
    return function


@click.command(
    cls=CommandWithColumns, short_help="Write a page that shows what a model has learned."
)
@click.argument("run", type=click.Path(file_okay=False))
@click.option("--out", required=True, metavar="FILE", type=click.Path(dir_okay=False),
              help="The page, such as page.html.")  # fmt: skip
@click.option("--data", metavar="FILE", type=click.Path(),
              help="A file like that of the fit: documents or rows to be shown or scored.")  # fmt: skip
@click.option("--title", help="Of the page. [default: the name of the model]")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@_reading
def report(run, out, data, title, is_opened, **given):
    """Write one HTML page that shows what a model has learned; it needs no network and no server.

    \b
    topics       a map, words, which go together, chains; with --data documents
    multinomial  shares, which categories go together; with --data its rows, and
                 rows drawn anew beside them
    regression   what each covariate does, any two of its values compared, groups
    gp           paths with bands, or a map with a slider through time; with --data
                 how well counts that were held out are foretold
    lds          probabilities over time, a forecast, states
    and of each whether to trust the run, its settings, seed and versions

    The page holds the parts of the data that it shows.

    \b
    Example: polystick report run --out page.html
             polystick report run --out page.html --data speeches.csv --title Speeches
    """  # noqa: D301
    from polystick.commands import runs

    opened = runs.open_run(run)
    chosen = {name: value for name, value in given.items() if value is not None}
    if data is None and chosen:
        raise ValueError(
            f"--{min(chosen).replace('_', '-')} says how to read a file: give one by --data"
        )
    about = _pairs(opened)
    if data is not None:
        about |= _ABOUT[opened.kind](opened, data, {**opened.options, **chosen})
    say(opened.estimator.report(out, title=title, **about))
    if is_opened:
        click.launch(out)


def _pairs(opened):
    """Return the associations of topics that the run has kept, by name, if there are any."""
    if opened.associations is None:
        return {}
    topics, table = list(opened.estimator.topic_labels_), opened.associations
    parts = (table.pivot(index="topic", columns="with", values=name) for name in Matrices._fields)
    halves = (part.reindex(index=topics, columns=topics) for part in parts)
    return {"association": Matrices(*(half.fillna(half.T) for half in halves))}


def _documents(opened, path, options):
    from polystick.commands.files import Reading
    from polystick.commands.models import read_data
    from polystick.commands.texts import read_texts

    data = read_data(opened.kind, path, options, opened.names)
    fields = {name: options[name] for name in Reading._fields if options.get(name) is not None}
    texts = read_texts(path, Reading(**fields))
    (documents,) = data.arguments
    shown = {} if texts is None else {"texts": texts}
    return {"documents": documents, **shown, **data.about}


def _rows(opened, path, options):
    from polystick.commands.models import read_data

    return {"counts": read_data(opened.kind, path, options, opened.names).arguments[0]}


def _held_out(opened, path, options):
    from polystick.commands.models import read_data

    return {"held_out": read_data(opened.kind, path, options, opened.names).arguments}


def _nothing(opened, path, options):
    raise ValueError(
        f"the page of a run of {opened.kind} shows what it was fitted to; leave --data out"
    )


_ABOUT = {
    "topics": _documents,
    "multinomial": _rows,
    "gp": _held_out,
    "lds": _nothing,
    "regression": _nothing,
}
