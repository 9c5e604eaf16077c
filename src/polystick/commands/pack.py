"""`polystick pack`: files become a corpus in parts, which may be larger than memory."""

import sys
from pathlib import Path

import click

from polystick.commands.fit import READING, TEXTS
from polystick.commands.places import FOLDER
from polystick.commands.speech import say


def _options(function):
    for option in reversed((*TEXTS, *READING)):
        function = option(function)
    return function


@click.command(short_help="Make a corpus in parts of files that are too many for memory.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--out", required=True, metavar="DIR", type=FOLDER,
              help="Folder for the corpus: new, or empty.")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), default=50_000, show_default=True, metavar="N",
              help="Documents in each part. Where parts end is part of a fit's last bits.")  # fmt: skip
@_options
def pack(files, out, rows, **given):
    """Make a corpus in parts in DIR of FILES, which together may be larger than memory.

    FILES are read as by `polystick fit topics`, a few documents at a time, and docword files of the UCI
    repository too; tables of counts, .npz and .mtx one file at a time. Fit it by `polystick fit topics
    DIR`, or by CorrelatedTopicModel().fit(polystick.Corpus("DIR")).

    Example: polystick pack news-*.jsonl --out corpus --min-df 5
    """
    from polystick.commands.files import Reading
    from polystick.commands.packing import Choice, pack_files

    reading = Reading(
        **{field: given[field] for field in Reading._fields if given[field] is not None}
    )
    choice = Choice(**{field: given[field] for field in Choice._fields})
    with _bar(files) as bar:
        packed = pack_files(files, out, reading, choice, rows, bar.update)
    corpus = packed.corpus
    say(
        f"{len(corpus)} documents, {corpus.shape[1]} words ({packed.n_dropped} dropped), "
        f"{corpus.n_tokens:.0f} tokens in {len(corpus.parts)} parts"
    )
    say(f"Next: polystick fit topics {out} --out run")


def _bar(files):
    """Return a bar over the bytes of the files, where a person watches."""
    from tqdm import tqdm

    sizes = [p.stat().st_size for f in files for p in _files_of(Path(f)) if p.is_file()]
    return tqdm(
        total=sum(sizes), unit="B", unit_scale=True, desc="pack", disable=not sys.stderr.isatty()
    )


def _files_of(path):
    return path.iterdir() if path.is_dir() else [path]
