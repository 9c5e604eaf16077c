"""Where files come from: the folder that POLYSTICK_DATA names, else a download into the user's cache."""

import os
from pathlib import Path
from typing import NamedTuple

FOLDER = "POLYSTICK_DATA"


class Source(NamedTuple):
    """A public file: what it is, its name, where to get it and its SHA-256."""

    title: str
    file: str
    address: str
    checksum: str | None  # None: not known, so it is not downloaded; its reader checks the content


AP = Source(
    "the AP News corpus",
    "ap.tgz",
    "http://www.cs.columbia.edu/~blei/lda-c/ap.tgz",
    "91bc914b8f66d55c3b87556d6450b7a7c635efae752eedc702fd20b1fb1b3e8b",
)
NEWSGROUPS = Source(
    "the 20 Newsgroups corpus",
    "20news-bydate.tar.gz",
    "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
    "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
)
# Project Gutenberg edits its own file (www.gutenberg.org/ebooks/11) now and then, so no checksum of it
# lasts; this is a copy that cannot change.
ALICE = Source(
    "the text of Alice's Adventures in Wonderland",
    "alice.txt",
    "https://raw.githubusercontent.com/HIPS/pgmult/"
    "60631edda247486532b3269d0954b91bad7b8159/data/alice/alice.txt",
    "8cd145a7a50b513fa05caa8c186dbe567f6ba70ea48ff9ae0c9f38f57cb1b683",
)
CHROMOSOME = Source(
    "human chromosome 22",
    "chr22.fa.gz",
    "https://hgdownload.soe.ucsc.edu/goldenPath/hg38/chromosomes/chr22.fa.gz",
    None,
)


def locate(source, *others):
    """Return the path of a source, or of the first of other files in the folder that hold the same."""
    if folder := os.environ.get(FOLDER):
        for name in (*others, source.file):
            if (path := Path(folder, name)).is_file():
                return path
    return download(source)


def download(source):
    """Return the path of a source in the user's cache; it is downloaded the first time."""
    if source.checksum is None:
        raise FileNotFoundError(
            f"{source.title} is not downloaded, for no checksum of it is known: {by_hand(source)}"
        )
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"downloading {source.title} needs pooch: pip install polystick[data], or {by_hand(source)}"
        ) from error
    try:
        return Path(
            pooch.retrieve(
                source.address,
                known_hash=f"sha256:{source.checksum}",
                fname=source.file,
                path=pooch.os_cache("polystick"),
                downloader=pooch.HTTPDownloader(timeout=30),
            )
        )
    except OSError as error:
        raise FileNotFoundError(
            f"{source.title} could not be downloaded ({type(error).__name__}): {by_hand(source)}"
        ) from error


def by_hand(source):
    """Return what to do without a download."""
    folder = os.environ.get(FOLDER)
    now = f"now {folder}" if folder else "now not set"
    return (
        f"get {source.address} and put it, as {source.file}, into the folder that the environment "
        f"variable {FOLDER} names ({now})"
    )
