"""Long sequences: the words of Alice in Wonderland, and DNA translated to amino acids."""

import gzip
import hashlib
import re
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from polystick.datasets import text
from polystick.datasets.sources import ALICE, CHROMOSOME, locate

FIRST_CHAPTER = re.compile(r"^[ \t]*CHAPTER I\.", re.M)
LAST_WORDS = "THE END"
PICTURE = re.compile(r"\[Illustration[^\]]*\]")
APOSTROPHES = str.maketrans("", "", "'’_")  # _ is Project Gutenberg's sign of italics

PIECE = "human_chr22_hg38_23800000_23980000.fa.gz"
START, STOP = 23_799_999, 23_980_000  # of the piece, from 0
# SHA-256 of the letters of the piece
CHECKSUM = "1a4e0abed68f0f4cc22534c6570832b09d0613bd5d26b52d3e0faa61b47a2de2"

# The standard code, with the bases of a codon in the order TCAG, the last one the fastest.
AMINO_ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
CODE = dict(zip(map("".join, product("TCAG", repeat=3)), AMINO_ACIDS, strict=True))
ALPHABET = np.array([*sorted(set(AMINO_ACIDS) - {"*"}), "*", "X"])


class Book(NamedTuple):
    """Words of a book in their order."""

    tokens: np.ndarray  # (n,) int64, positions in words
    words: np.ndarray  # (V,) the most frequent first


class Protein(NamedTuple):
    """Amino acids in their order."""

    tokens: np.ndarray  # (n,) int64, positions in alphabet
    alphabet: np.ndarray  # (22,) the 20 amino acids, * (stop) and X (unknown)


def load_alice(n_words: int = 1000, *, n_tokens: int | None = None) -> Any:
    """Load the words of Alice's Adventures in Wonderland in their order.

    Words are in lower case and without English stop words; an apostrophe is left out ("dont"). The text
    is read from the folder that POLYSTICK_DATA names (``alice.txt``, or Project Gutenberg's own
    ``11-0.txt`` or ``pg11.txt``), or else downloaded once (this needs ``polystick[data]``).

    Parameters
    ----------
    n_words : int or None
        How many of the most frequent words there are, the others are left out; None is all of them.
    n_tokens : int or None
        How many words of the text, from its beginning; None is all (9367 of the 1000 most frequent).
        The paper uses 4000 and holds out the last 100 of them.

    Returns
    -------
    Book (tokens, words)
        words go by falling count, and by the alphabet where counts are equal.

    Examples
    --------
    >>> from polystick import datasets
    >>> alice = datasets.load_alice(n_tokens=4000)
    >>> alice.words[alice.tokens[:5]].tolist()
    ['chapter', 'rabbit', 'hole', 'alice', 'beginning']
    """
    path = locate(ALICE, "alice.txt", "11-0.txt", "pg11.txt")
    found = text.split_words(story(path.read_text(encoding="utf-8-sig")).translate(APOSTROPHES))
    words = text.most_frequent([found], n_words)
    (tokens,) = text.encode([found], words)
    return Book(first(tokens, n_tokens, "n_tokens"), words)


def load_dna(n_symbols: int | None = 682) -> Any:
    """Load a stretch of human DNA as amino acids.

    Codons from chr22:23,800,000 (assembly GRCh38, plus strand, frame 0) to 23,980,000 are read by the
    standard code; whether they are in a gene does not matter. The paper's own stretch is not known: it
    too is one of 682 symbols of chromosome 22. The chromosome is read from the folder that
    POLYSTICK_DATA names (``chr22.fa.gz``, 12 MB, or this piece of it), and must have the right letters. It
    is not downloaded, for no checksum of the whole file is known.

    Parameters
    ----------
    n_symbols : int or None
        How many symbols, from the beginning; None is all 60000. The paper holds out the last 10 of 682.

    Returns
    -------
    Protein (tokens, alphabet)
        alphabet has 22 symbols: the 20 amino acids, * (stop) and X (unknown, which does not occur).

    Examples
    --------
    >>> from polystick import datasets
    >>> dna = datasets.load_dna()
    >>> "".join(dna.alphabet[dna.tokens[:10]])
    'SIFSRDRVSP'
    """
    residues = translate(read_piece(locate(CHROMOSOME, PIECE)))
    at = {symbol: i for i, symbol in enumerate(ALPHABET.tolist())}
    tokens = np.array([at[residue] for residue in residues], dtype=np.int64)
    return Protein(first(tokens, n_symbols, "n_symbols"), ALPHABET.copy())


def first(tokens, n, name):
    """Return the first n tokens, or all."""
    if n is not None and not 1 <= n <= len(tokens):
        raise ValueError(f"{name} must be from 1 to {len(tokens)}, or None for all; got {n}")
    return tokens[:n]


def story(book):
    """Return what is from the first chapter to the end: no list of contents, licence or pictures."""
    starts = [match.start() for match in FIRST_CHAPTER.finditer(book)]
    if not starts or LAST_WORDS not in book:
        raise ValueError(
            f"the text must have a line CHAPTER I. and the words {LAST_WORDS}; get it from {ALICE.address}"
        )
    return PICTURE.sub(" ", book[starts[-1] : book.rindex(LAST_WORDS) + len(LAST_WORDS)])


def read_piece(path):
    """Return the letters of the piece, from a file of it or of the whole chromosome."""
    letters = read_fasta(path)
    if path.name != PIECE:
        letters = letters[START:STOP]
    if hashlib.sha256(letters.encode()).hexdigest() != CHECKSUM:
        raise ValueError(
            f"{path} must be chromosome 22 of the assembly hg38, and is not or is damaged; "
            f"delete it, and get it from {CHROMOSOME.address}"
        )
    return letters


def read_fasta(path):
    """Return the letters of the first sequence of a compressed file, in upper case."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        record = file.read().lstrip(">").partition("\n>")[0]
    return record.partition("\n")[2].replace("\n", "").upper()


def translate(letters):
    """Return the amino acids of the codons from the first letter on; X where a base is unknown."""
    codons = (letters[i : i + 3] for i in range(0, len(letters) - 2, 3))
    return "".join(CODE.get(codon, "X") for codon in codons)
