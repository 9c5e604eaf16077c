"""Each idea has, once where it stands, the word that people search for."""

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
WORDS = {
    "out-of-core": "scale",
    "distributed computing": "scale",
    "memory-mapped": "scale",
    "label switching": "topics",
    "structural topic model": "topics",
    "Procrustes alignment": "sequences",
    "identifiability": "sequences",
    "average marginal effect": "regression",
    "random effects": "regression",
    "varying intercepts": "regression",
    "overdispersion": "regression",
    "mini-batch": "method",
    "Robbins-Monro": "method",
    "forward filtering backward sampling": "method",
    "probability distribution": "method",
}


@pytest.mark.parametrize("word", WORDS)
def test_the_word_stands_on_its_page(word):
    assert word in " ".join((DOCS / f"{WORDS[word]}.md").read_text().split())
