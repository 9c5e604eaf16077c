"""Make the bundled counts of words in the State of the Union addresses from their texts.

    POLYSTICK_DATA=FOLDER python tools/make_state_of_the_union.py        with sotu.jsonl.xz in FOLDER

An address is cut at ends of sentences into passages of about equal length. Words are runs of two or
more letters in lower case, without English stop words, contractions and notes such as (Applause.).
The addresses are works of the US government, in the public domain.
"""

import json
import lzma
import os
import re
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

TARGET = Path(__file__).parents[1] / "src" / "polystick" / "datasets" / "state_of_the_union.npz"
PASSAGE = 400  # words, stop words among them; some 150 are left
RAREST = 10  # passages that a word must be in
N_WORDS = 5000

NOTE = re.compile(r"[(\[](applause|laughter)\.?[)\]]")
CONTRACTION = re.compile(r"[a-z]+n['’]t\b|[a-z]+['’](ll|ve|re|d|m)\b|['’]s\b")
SENTENCE = re.compile(r"(?<=[.!?;]) +")


def passages(text, length=PASSAGE):
    """Return the passages of an address: cuts are at the ends of sentences nearest to equal parts."""
    sentences = SENTENCE.split(text)
    ends = np.cumsum([sentence.count(" ") + 1 for sentence in sentences])
    n_parts = max(1, round(ends[-1] / length))
    targets = ends[-1] * np.arange(1, n_parts) / n_parts
    cuts = sorted({int(np.argmin(abs(ends - target))) + 1 for target in targets})
    edges = zip([0, *cuts], [*cuts, len(sentences)])
    return [" ".join(sentences[a:b]) for a, b in edges if a < b]


def plain(text):
    """Return lower case without notes and contractions."""
    return CONTRACTION.sub(" ", NOTE.sub(" ", text.lower()))


def count_words(texts, rarest=RAREST, n_words=N_WORDS):
    """Return counts (n, V) as CSR and the words, the most frequent first."""
    vectorizer = CountVectorizer(
        preprocessor=plain,
        token_pattern=r"\b[a-z]{2,}\b",
        stop_words="english",
        min_df=rarest,
    )
    counts = vectorizer.fit_transform(texts)
    order = np.argsort(-np.asarray(counts.sum(axis=0)).ravel(), kind="stable")[:n_words]
    counts = counts[:, order].tocsr()
    counts.sort_indices()
    return counts, vectorizer.get_feature_names_out()[order].astype(str)


def bundled(addresses):
    """Return the arrays that are bundled, by year."""
    addresses = sorted(addresses, key=lambda address: address["year"])
    parts = [passages(address["text"]) for address in addresses]
    counts, words = count_words([text for part in parts for text in part])
    names = [address["name"].replace("Mc Kinley", "McKinley") for address in addresses]
    presidents = list(dict.fromkeys(names))
    return {
        "data": counts.data.astype(np.uint8),
        "indices": counts.indices.astype(np.uint16),
        "lengths": np.diff(counts.indptr).astype(np.uint16),
        "words": words,
        "passages": np.array([len(part) for part in parts], dtype=np.uint16),
        "years": np.array([address["year"] for address in addresses], dtype=np.int16),
        "president": np.array([presidents.index(name) for name in names], dtype=np.uint8),
        "presidents": np.array(presidents),
    }


def read(folder):
    with lzma.open(folder / "sotu.jsonl.xz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


if __name__ == "__main__":
    np.savez_compressed(TARGET, **bundled(read(Path(os.environ["POLYSTICK_DATA"]))))
