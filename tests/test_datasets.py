"""The bundled data, the program that made the counts of words, and the examples of all loaders."""

import doctest
import importlib.util
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from polystick import datasets

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tools" / "make_state_of_the_union.py"
DATA = os.environ.get("POLYSTICK_DATA")
BUNDLED = {"load_names", "load_state_centres", "load_state_of_the_union"}


def load_program():
    spec = importlib.util.spec_from_file_location(SOURCE.stem, SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = load_program()


@pytest.fixture(scope="module")
def addresses():
    return datasets.load_state_of_the_union()


def count_of(addresses, word, chosen):
    column = int(np.flatnonzero(addresses.words == word)[0])
    return int(addresses.counts[chosen][:, [column]].sum())


def test_addresses_have_their_shapes_and_types(addresses):
    counts, words, years, presidents = addresses
    assert isinstance(counts, scipy.sparse.csr_array)
    assert counts.shape == (4485, 5000) == (len(years), len(words))
    assert presidents.shape == years.shape
    assert counts.dtype == years.dtype == np.int64
    assert counts.has_canonical_format
    assert counts.data.min() >= 1
    assert len(set(words)) == len(words)
    for names in (words, presidents):
        assert names.dtype.kind == "U"


def test_addresses_are_what_is_known_of_them(addresses):
    counts, words, years, presidents = addresses
    assert (years[0], years[-1]) == (1790, 2021)
    assert (np.diff(years) >= 0).all()
    assert (presidents[0], presidents[-1]) == ("George Washington", "Joseph R Biden")
    assert set(presidents[years == 1863]) == {"Abraham Lincoln"}
    assert len(set(presidents)) == 43
    assert (np.diff(counts.sum(axis=0)) <= 0).all()
    assert {"congress", "government", "treaty", "slavery"} <= set(words)
    assert not {"the", "don", "ll", "applause"} & set(words)
    assert count_of(addresses, "japanese", (years > 1941) & (years < 1946)) > 20
    assert count_of(addresses, "railroads", years < 1800) == 0
    assert count_of(addresses, "slavery", years > 1950) < count_of(
        addresses, "slavery", (years > 1855) & (years < 1866)
    )


def test_covariates_of_the_addresses_are_public_facts(addresses):
    table = addresses.covariates
    assert list(table.columns) == ["year", "president", "party", "form"]
    assert not table.isna().any().any()
    np.testing.assert_array_equal(table.year, addresses.years)
    one = table.drop_duplicates().set_index(["president", "year"])
    assert len(one) == 233
    known = {
        ("John Adams", 1800): ("Federalist", "spoken"),
        ("Thomas Jefferson", 1801): ("Democratic-Republican", "written"),
        ("Abraham Lincoln", 1862): ("Republican", "written"),
        ("Woodrow Wilson", 1913): ("Democratic", "spoken"),
        ("Harry S Truman", 1953): ("Democratic", "written"),
        ("Dwight D Eisenhower", 1953): ("Republican", "spoken"),
        ("Joseph R Biden", 2021): ("Democratic", "spoken"),
    }
    assert {key: tuple(one.loc[key]) for key in known} == known
    between = one[one.index.get_level_values("year").isin(range(1801, 1913))]
    assert (between.form == "written").all()
    assert (one[one.index.get_level_values("year") > 1981].form == "spoken").all()


def test_every_passage_has_words_and_every_word_is_in_ten_passages(addresses):
    assert addresses.counts.sum(axis=1).min() > 50
    assert addresses.counts.sum(axis=1).max() < 300
    assert np.bincount(addresses.counts.indices).min() >= 10


def test_passages_are_whole_sentences_of_about_equal_length():
    text = " ".join(f"Sentence {i} has five words." for i in range(100))
    parts = program.passages(text, length=50)
    assert " ".join(parts) == text
    assert [part.count(" ") + 1 for part in parts] == [50] * 10
    assert program.passages("One. Two.", length=50) == ["One. Two."]
    assert program.passages("word " * 99 + "end.", length=10) == ["word " * 99 + "end."]


def test_words_of_a_passage():
    text = "[Laughter] We don't say the nation's 5 Laws, they’ll say: laws! (Applause.) x"
    counts, words = program.count_words([text, text], rarest=1)
    assert dict(zip(words.tolist(), counts[:1].toarray()[0].tolist())) == {
        "laws": 2,
        "say": 2,
        "nation": 1,
    }


@pytest.mark.skipif(DATA is None, reason="needs the texts, in the folder POLYSTICK_DATA")
def test_the_bundled_counts_are_those_of_the_program():
    """Words as rare as the rarest may be others: which of them are kept was up to the machine once."""
    made = program.bundled(program.read(Path(DATA)))
    with np.load(program.TARGET) as stored:
        assert set(stored) == set(made)
        for name in ("passages", "years", "president", "presidents"):
            np.testing.assert_array_equal(stored[name], made[name])
        assert stored["words"].shape == made["words"].shape
        ours, theirs = table_of_words(stored), table_of_words(made)
    sizes = theirs.sum(axis=0).to_numpy()
    common = sizes > sizes.min()
    assert common.sum() > 4900
    assert ours.columns[common].equals(theirs.columns[common])
    assert ours.loc[:, common].equals(theirs.loc[:, common])


def table_of_words(parts):
    """Return counts of words by passage, as a table."""
    edges = np.cumsum([0, *parts["lengths"].astype(int)])
    shape = len(edges) - 1, len(parts["words"])
    counts = scipy.sparse.csr_array((parts["data"], parts["indices"], edges), shape=shape)
    return pd.DataFrame(counts.toarray().astype(np.int64), columns=parts["words"])


def test_every_state_has_a_centre():
    centres = datasets.load_state_centres()
    states = datasets.load_names(years=[2000]).loc[2000].index
    assert centres.index.tolist() == states.tolist()
    assert centres.columns.tolist() == ["latitude", "longitude"]
    inside = centres.drop(["AK", "HI"])
    assert inside["latitude"].between(25, 49).all()
    assert inside["longitude"].between(-125, -67).all()
    north, west = centres["latitude"].idxmax(), centres["longitude"].idxmin()
    assert (north, west) == ("AK", "HI")
    assert inside["longitude"].idxmax() == "ME"


def test_examples_of_the_loaders():
    failed = 0
    for name in datasets.__all__:
        if DATA or name in BUNDLED:
            (example,) = doctest.DocTestFinder().find(getattr(datasets, name), name)
            assert len(example.examples) >= 2
            failed += doctest.DocTestRunner().run(example).failed
    assert failed == 0


def test_bundled_files_are_small_and_hold_nothing_but_arrays():
    folder = ROOT / "src" / "polystick" / "datasets"
    for name, limit in (("names.npz", 1.6e6), ("state_of_the_union.npz", 1.0e6)):
        assert (folder / name).stat().st_size < limit
        assert all(entry.endswith(".npy") for entry in zipfile.ZipFile(folder / name).namelist())
