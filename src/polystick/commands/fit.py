"""`polystick fit`: learn a model from a file."""

import contextlib
import json
import sys
import time
from pathlib import Path

import click

from polystick.commands.places import FOLDER
from polystick.commands.speech import note, say

_COUNT = click.IntRange(min=1)


class Columns(click.ParamType):
    """Names of columns, separated by commas."""

    name = "columns"

    def convert(self, value, param, ctx):
        names = value.split(",") if isinstance(value, str) else value
        if not all(names):
            self.fail(f"names must be separated by single commas; got {value!r}", param, ctx)
        return list(names)


class CommandWithColumns(click.Command):
    """A command that knows why there is a word too many: columns were separated by spaces."""

    def parse_args(self, ctx, args):
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            hint = _with_commas(given)
            if hint is None or "extra argument" not in error.message:
                raise
            said = f"{error.message}; separate columns by commas: {hint}"
            raise click.UsageError(said, ctx) from error


def _with_commas(words):
    """Return what was meant by "--inputs x y", or None where nothing like that was said."""
    for option, first, second in zip(words, words[1:], words[2:]):
        if option in ("--inputs", "--ignore", "--groups") and not second.startswith("-"):
            return f"{option} {first},{second}"
    return None


class Frequency(click.ParamType):
    """A number of documents, or a share of all with a decimal point."""

    name = "frequency"

    def convert(self, value, param, ctx):
        try:
            number = float(value) if "." in str(value) else int(value)
        except ValueError:
            number = -1
        if not (number >= 1 if isinstance(number, int) else 0 <= number <= 1):
            self.fail(f"must be a whole number, or a share such as 0.1; got {value!r}", param, ctx)
        return number


RUNNING = (
    click.option("--out", metavar="RUN", type=FOLDER,
                 help="Folder for the result, its settings and its checkpoints. [default: none; the command "
                 "says what it would do, and how long it would take]"),
    click.option("--resume", is_flag=True,
                 help="Go on with the run in that folder, to the same bits as if it had not stopped. "
                 "Options that are left out are those it was started with."),
    click.option("--seed", type=click.IntRange(min=0),
                 help="The same seed gives the same draws on any number of threads. [default: 0]"),
    click.option("--threads", type=_COUNT, help="[default: all cores]"),
    click.option("--draws", type=_COUNT, help="Draws to keep in each chain; with --min-ess at least."),
    click.option("--burn", type=click.IntRange(min=0), help="Sweeps to forget first."),
    click.option("--chains", type=_COUNT, help="Independent chains."),
    click.option("--min-ess", type=click.IntRange(min=0), metavar="N",
                 help="Go on until all that is diagnosed has N effective draws in all chains together and an "
                 "R-hat within its limit; 0: until --draws. [default without --draws: 400; multinomial: 0, "
                 "with --link softmax 200; regression: 200]"),
    click.option("--max-draws", type=_COUNT, metavar="N",
                 help="With --min-ess: stop then in any case. [default: 1000, of topics 500, of "
                 "regression and with --link softmax 4000]"),
    click.option("--mean-field", is_flag=True, default=None,
                 help="Climb a bound instead of sampling: quick, takes weights, and is too sure."),
    click.option("--checkpoint-every", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                 help="Save the run so often. [default: 60]"),
    click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON."),
    click.option("--cluster", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there."),
    click.option("--scheduler-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
                 help="The same, by the file that dask scheduler --scheduler-file wrote."),
    click.option("--workers", type=_COUNT, help="Run on a cluster of so many processes on this machine."),
)  # fmt: skip
READING = (
    click.option(
        "--ignore",
        type=Columns(),
        metavar="COLUMNS",
        help="Columns that are no counts, separated by commas.",
    ),
    click.option(
        "--name",
        metavar="COLUMN",
        help="The file has a line for each count: the column with the category. Lines that agree "
        "in all other columns are one row.",
    ),
    click.option(
        "--value",
        metavar="COLUMN",
        help="With --name: the column with how many. [default: each line is one]",
    ),
    click.option(
        "--vocabulary",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Names of the columns of a matrix (.mtx, .npz), one to a line.",
    ),
    click.option("--field", help="Field of each line of JSON. [default: text, else tokens]"),
    click.option(
        "--max-words",
        type=click.IntRange(min=2),
        metavar="N",
        help="Keep the N most frequent. [default: all]",
    ),
    click.option(
        "--stop-words",
        is_flag=False,
        flag_value="english",
        metavar="WHICH",
        help="Words to drop from texts, such as 'the': english, none, or a file with a word in each "
        "line. [default for topics: english, else none]",
    ),
)
TEXTS = (
    click.option("--text", metavar="COLUMN", help="The column of a table that holds texts."),
    click.option("--min-df", type=Frequency(), metavar="N",
                 help="Drop words that are in fewer texts than N, or than a share such as 0.01. [default: 2, "
                 "of less than 100 texts 1]"),
    click.option("--max-df", type=Frequency(), metavar="N",
                 help="Drop words that are in more texts than N, or than a share. [default: 0.8, of less "
                 "than 100 texts 1.0]"),
)  # fmt: skip


class Guided(click.Group):
    """Commands, and a guide for who names a file and no command."""

    def resolve_command(self, ctx, args):
        if args[0] not in self.commands and Path(args[0]).exists():
            return "look", self.commands["look"], args
        return super().resolve_command(ctx, args)


@click.group(cls=Guided, no_args_is_help=False, invoke_without_command=True,
             short_help="Learn a model from a file of counts.")  # fmt: skip
@click.pass_context
def fit(ctx):
    """Learn a model from a file of counts; RUN then serves score, show and plot.

    `polystick fit FILE` says what is in a file, and which commands could learn from it. Without --out a
    command says what it would do, and how long it would take.

    \b
    Files, by their ending (also with .gz, .bz2 or .xz behind it):
      .csv .tsv    a header with the names of the categories, a line for each row;
                   or a line for each count, with --name and --value
                   or texts in one column, with --text (topics only)
      .parquet     the same (needs pyarrow)
      .txt         topics only: a line for each document; or a folder of such files,
                   one for each document
      .jsonl       a line for each document: {"text": "..."} or {"tokens": [...]}
      .npz         a CSR matrix (data, indices, indptr, shape) with names in vocab,
                   one table of counts, or tokens (and offsets) with vocab
      .mtx         Matrix Market, rows are documents; names by --vocabulary
      a folder that `polystick pack` made, larger than memory (topics only)

    Example: polystick fit topics speeches.jsonl --topics 20 --out run
    """  # noqa: D301
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())


@fit.command(hidden=True)
@click.argument("file", type=click.Path(exists=True))
def look(file):
    """Tell what is in FILE, and what could be learned from it."""
    from polystick.commands import guide

    guide.look(file)


def with_options(*more):
    """Give a command the argument FILE and the options of every fit."""

    def decorate(function):
        for option in reversed((*more, *RUNNING, *READING)):
            function = option(function)
        return click.argument("file", type=click.Path())(function)

    return decorate


def _joined(ctx, param, given):
    """Return the names of all times that an option came, or None."""
    return [name for names in given for name in names] or None


@fit.command(cls=CommandWithColumns)
@with_options(
    click.option("--topics", type=click.IntRange(min=2), help="Number of topics. [default: 20]"),
    click.option("--svi", is_flag=True, default=None,
                 help="Climb a bound by batches of documents: for large corpora; is too sure."),
    click.option("--keep-checkpoint", is_flag=True, default=None,
                 help="Keep the checkpoint when the run has ended, which takes several times the room of the "
                 "result: then --resume can make it longer."),
    click.option("--prevalence", metavar="FORMULA",
                 help='How shares of topics depend on other columns of a table, such as "cr(year) + party" '
                 "(needs formulaic); then show has --effects. In a table of counts --ignore these columns."),
    click.option("--groups", type=Columns(), multiple=True, callback=_joined, metavar="COLUMNS",
                 help="With --prevalence: columns whose values are groups with effects from a common law, "
                 "such as authors; new documents may be of others. Nested as in paper/author."),
    *TEXTS,
)  # fmt: skip
def topics(**options):
    """Learn topics of documents, and a law of their shares.

    FILE holds counts or texts; a folder of .txt files has a document in each.

    \b
    Example: polystick fit topics speeches.jsonl --topics 30 --out run
             polystick fit topics articles.csv --text body --min-df 5 --out run
             polystick fit topics articles.csv --text body --prevalence year --groups paper --out run
    """  # noqa: D301
    run("topics", **options)


@fit.command(cls=CommandWithColumns)
@with_options(
    click.option("--link", type=click.Choice(["stick", "softmax"]),
                 help="How shares are made: by binary splits, or with no category first; then show and plot "
                 "tell which categories go together. [default: stick]"),
    click.option("--covariance", type=click.Choice(["full", "factor"]),
                 help="The law of what varies together: any covariance, or few factors. [default: full, with "
                 "--link softmax factor]"),
)  # fmt: skip
def multinomial(**options):
    """Learn the shares of categories, how they differ from row to row, and which go together.

    \b
    Example: polystick fit multinomial species.csv --ignore site --out run
             polystick fit multinomial species.csv --ignore site --link softmax --out run
    """  # noqa: D301
    run("multinomial", **options)


@fit.command(cls=CommandWithColumns)
@with_options(
    click.option("--inputs", required=True, type=Columns(), metavar="COLUMNS",
                 help="Columns with the time or place of each row, separated by commas.")
)  # fmt: skip
def gp(**options):
    """Learn probabilities that are smooth functions of inputs, such as years or places.

    Example: polystick fit gp names.csv --inputs year --out run
    """
    run("gp", **options)


@fit.command(cls=CommandWithColumns)
@with_options(
    click.option("--states", type=_COUNT, help="Dimensions of the hidden state. [default: 5]"),
    click.option("--sequence", metavar="COLUMN",
                 help="The column of a table that names the sequence of each row; rows are its steps. "
                 "[default: all rows are one sequence]"),
)  # fmt: skip
def lds(**options):
    """Learn the dynamics of sequences of tokens or counts.

    Example: polystick fit lds words.jsonl --states 5 --max-words 200 --out run
    """
    run("lds", **options)


@fit.command(cls=CommandWithColumns)
@with_options(
    click.option("--formula", required=True, metavar="FORMULA",
                 help='How categories depend on other columns of the table, such as "cr(year) + party" '
                 '(needs formulaic). "1" is a common level.'),
    click.option("--groups", type=Columns(), multiple=True, callback=_joined, metavar="COLUMNS",
                 help="Columns whose values are groups with effects from a common law: crossed, separated by "
                 "commas or with --groups for each; nested as in state/county."),
    click.option("--overdispersion", type=click.Choice(["none", "diagonal", "full"]),
                 help="How rows vary beyond covariates and groups. [default: full; of rows with single "
                 "counts none]"),
    click.option("--link", type=click.Choice(["stick", "softmax"]),
                 help="How shares are made: by binary splits, or with no category first. [default: stick]"),
)  # fmt: skip
def regression(**options):
    """Learn how the shares of categories depend on covariates and groups.

    FILE is a table. Columns that the formula or --groups name are covariates; all others are counts,
    but for those to --ignore. Then show has --effects.

    \b
    Example: polystick fit regression votes.csv --formula "cr(year) + income" --groups state --out run
             polystick fit regression people.csv --formula age --name party --out run
    """  # noqa: D301
    run("regression", **options)


def run(kind, *, out, **options):
    """Fit a model to a file, and write its folder; without a folder, tell what that would be."""
    from polystick.commands import runs

    if out is None:
        _rehearse(kind, **options)
        return
    places = {name: options.pop(name) for name in ("cluster", "scheduler_file", "workers")}
    with runs.held(out), _elsewhere(**places):
        _run(kind, out=out, **options)


@contextlib.contextmanager
def _elsewhere(cluster, scheduler_file, workers):
    """Run fits on a cluster, if one was named."""
    from polystick import cluster as on_cluster

    given = [each for each in (cluster, scheduler_file, workers) if each is not None]
    if len(given) > 1:
        raise ValueError("--cluster, --scheduler-file and --workers name a cluster each; give one")
    if not given:
        yield
        return
    address = cluster
    if scheduler_file is not None:
        address = json.loads(Path(scheduler_file).read_text())["address"]
    with on_cluster(address, workers=workers):
        yield


def _rehearse(kind, *, file, resume, as_json, **given):
    from polystick.commands import models, rehearsal
    from polystick.commands.options import refuse_idle, settle_length

    if resume or as_json:
        name = "--resume" if resume else "--json"
        raise click.UsageError(f"{name} is of a run, which needs --out, its folder")
    chosen = {name: value for name, value in given.items() if value is not None}
    options = settle_length(given, {**given, **models.defaults_of(kind, given), **chosen})
    refuse_idle(file, given, options)
    data = _read(kind, file, options, as_json)
    _compile(kind, options, sys.stderr.isatty())
    rehearsal.rehearse(kind, data, options)


def _read(kind, file, options, as_json):
    """Read a file and tell how large it is."""
    from polystick.commands import models

    data = models.read_data(kind, file, options)
    for sentence in data.notes:
        note(sentence)
    if not as_json:
        n_rows = f"{data.n_rows} {models.MODELS[kind].row}{'s'[: data.n_rows != 1]}"
        say(f"{n_rows}, {len(data.names)} categories, {data.n_counts} counts")
    return data


def _compile(kind, options, shown):
    """Compile what a fit calls, if that was not done yet."""
    from polystick import warm_up

    if not options["mean_field"] and not options.get("svi"):
        link = "softmax-" if options.get("link") == "softmax" else ""
        warm_up(f"{link}{kind}", predictions=kind == "topics", progress=shown)


def _run(kind, *, file, out, resume, as_json, **given):
    from polystick.commands import diagnosis, models, runs
    from polystick.commands.options import refuse_idle, settle_length

    folder = Path(out)
    options = runs.begin(out, kind, given, models.defaults_of(kind, given), resume)
    options = settle_length(given, options)
    refuse_idle(file, given, options)
    data = _read(kind, file, options, as_json)
    size = {"rows": data.n_rows, "categories": len(data.names), "counts": data.n_counts}
    shown = sys.stderr.isatty() and not as_json
    place = {"progress": shown, "checkpoint": folder / "checkpoint"}
    place["vectorizer"] = data.vectorizer
    estimator = models.make_estimator(kind, options, len(data.names), **place)
    begun = time.perf_counter()
    _compile(kind, options, shown)
    with runs.started(folder, kind, options, data.names), diagnosis.warnings_as_notes():
        estimator.fit(*data.arguments, resume=resume, **data.about)
    about = {"file": Path(file).name, **size, "sweeps": int(estimator.n_iter_)}
    pairs = models.associations_of(kind, estimator, data)
    with runs.told_of_checkpoint(folder):
        has_draws = runs.finish(folder, kind, options, estimator, pairs, data=about)
    if not has_draws:
        note("no draws.nc was written: pip install polystick[io]")
    outcome = {
        "run": str(folder),
        "model": kind,
        **about,
        "summary": estimator.posterior_.summary(),
        **diagnosis.diagnosis_of(estimator.posterior_),
    }
    _report({**outcome, "seconds": round(time.perf_counter() - begun, 1)}, as_json)
    _refuse_half(estimator, folder)


def _report(outcome, as_json):
    if as_json:
        say(json.dumps(outcome))
        return
    folder = outcome["run"]
    say(outcome["summary"])
    say(f"{outcome['seconds']} seconds; the result is in {folder}")
    say(f"next: polystick show {folder}; polystick plot {folder} --out pictures")


def _refuse_half(estimator, folder):
    """Let a script know that Ctrl-C ended the run."""
    if not estimator.posterior_.tree.attrs.get("finished", 1):
        raise RuntimeError(
            f"stopped after {estimator.n_iter_} sweeps, before the end; {folder} holds the draws so far; "
            "go on with --resume"
        )
