"""Alice and DNA: books and chromosomes as they are downloaded."""

import gzip
import hashlib

import numpy as np
import pytest

from polystick import datasets
from polystick.datasets import strings
from polystick.datasets.sources import FOLDER

STORY = """CHAPTER I.
Down the Rabbit-Hole

[Illustration: a rabbit]

‘I don’t like _tea_,’ said Alice--‘tea!’
[Illustration]
CHAPTER II.
Tea and tea. {end}
"""
BOOK = f"""The Project Gutenberg eBook of Alice's Adventures in Wonderland
*** START OF THE PROJECT GUTENBERG EBOOK 11 ***
Contents

 CHAPTER I.     Down the Rabbit-Hole
 CHAPTER II.    Tea

{STORY.format(end="THE END")}
*** END OF THE PROJECT GUTENBERG EBOOK 11 ***
This licence is no part of the story.
"""
WORDS = "chapter rabbit hole dont like tea said alice tea chapter ii tea tea end"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["alice.txt", "11-0.txt", "pg11.txt"])
def test_a_book_of_project_gutenberg(folder, name):
    (folder / name).write_text("\ufeff" + BOOK, encoding="utf-8")
    book = datasets.load_alice(None)
    assert " ".join(book.words[book.tokens]) == WORDS
    assert book.words[:3].tolist() == ["tea", "chapter", "alice"]
    assert book.tokens.dtype == np.int64


def test_the_most_frequent_words_and_the_first_of_them(folder):
    (folder / "alice.txt").write_text(STORY.format(end="THE END"), encoding="utf-8")
    assert datasets.load_alice(2).tokens.tolist() == [1, 0, 0, 1, 0, 0]
    assert datasets.load_alice(2, n_tokens=4).tokens.tolist() == [1, 0, 0, 1]
    with pytest.raises(ValueError, match="n_tokens must be from 1 to 6, or None for all; got 7"):
        datasets.load_alice(2, n_tokens=7)


@pytest.mark.parametrize("book", ["Once upon a time THE END", STORY.format(end="")])
def test_another_book(folder, book):
    (folder / "alice.txt").write_text(book, encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"must have a line CHAPTER I\. and the words THE END; get"
    ):
        datasets.load_alice()


def test_the_standard_code():
    assert len(strings.CODE) == 64
    assert {codon for codon, symbol in strings.CODE.items() if symbol == "*"} == {
        "TAA",
        "TAG",
        "TGA",
    }
    known = {"M": 1, "W": 1, "I": 3, "*": 3, "L": 6, "S": 6, "R": 6, "A": 4, "G": 4, "P": 4, "T": 4}
    symbols = list(strings.CODE.values())
    assert {symbol: symbols.count(symbol) for symbol in known} == known
    assert strings.CODE["ATG"] == "M"
    assert strings.CODE["TGG"] == "W"
    assert strings.translate("ATGTGGAAACATGANTAATT") == "MWKHX*"


def test_a_piece_of_a_chromosome(folder, monkeypatch):
    piece = "TAAATGTGGNNNCC"
    lines = ">chr22\nNNnn\nnntaa\natgtGG\nNNNCC\nAA\n>chr23\nTTTTTTT\n"
    monkeypatch.setattr(strings, "START", 6)
    monkeypatch.setattr(strings, "STOP", 6 + len(piece))
    monkeypatch.setattr(strings, "CHECKSUM", hashlib.sha256(piece.encode()).hexdigest())
    with gzip.open(folder / "chr22.fa.gz", "wt") as file:
        file.write(lines)
    whole = datasets.load_dna(None)
    assert "".join(whole.alphabet[whole.tokens]) == "*MWX"
    assert "".join(whole.alphabet) == "ACDEFGHIKLMNPQRSTVWY*X"
    whole.alphabet[:] = "?"  # it is a copy
    with gzip.open(folder / strings.PIECE, "wt") as file:
        file.write(f">chr22:7-20\n{piece}\n")
    again = datasets.load_dna(2)
    assert "?" not in again.alphabet
    assert again.tokens.tolist() == whole.tokens[:2].tolist()
    with pytest.raises(ValueError, match="n_symbols must be from 1 to 4, or None for all; got 682"):
        datasets.load_dna()


def test_another_chromosome(folder):
    with gzip.open(folder / "chr22.fa.gz", "wt") as file:
        file.write(">chr21\nACGT\n")
    with pytest.raises(
        ValueError, match=r"chr22.fa.gz must be chromosome 22 of the assembly hg38, and"
    ):
        datasets.load_dna()
