"""The documents that speak most of each topic, as a page shows them."""

import numpy as np
import scipy.sparse

from polystick.report import panels

__all__ = ["documents_panel"]

_EACH = 4  # of a topic
_LONGEST = 700  # characters that are shown of one
_WORDS = 40  # of one that has no text: its most frequent
_TOPICS = 6


def documents_panel(model, documents, texts, shares, known, words):
    """Return the panel of the documents that speak most of each topic.

    shares : (n, T) of the documents
    known : what else the model must know of them, by name
    words : (V,) names of the words of the model
    """
    table = model.representative_documents(
        _numbered(documents), n=_EACH, **{name: _numbered(each) for name, each in known.items()}
    )
    rows = [int(row) for row in table["document"]]
    shown = list(dict.fromkeys(rows))
    place = {row: i for i, row in enumerate(shown)}
    topic = {name: t for t, name in enumerate(model.topic_labels_)}
    of: list = [[] for _ in topic]
    for (name, _), row in zip(table.index, rows):
        of[topic[name]].append(place[row])
    tokens, names = dict(zip(rows, table["tokens"])), _names(documents)
    read = _reader(documents, texts, words)
    return {
        "kind": "documents",
        "title": "Documents that speak most of the topic",
        "note": "Words that speak of the chosen topic are marked, the more surely the stronger.",
        "documents": [
            {
                "name": str(row if names is None else names[row]),
                "tokens": int(tokens[row]),
                "text": read(row),
                "shares": _largest(shares[row]),
            }
            for row in shown
        ],
        "of": of,
        "wide": True,
    }


def _numbered(rows):
    """Return rows with their numbers for names, where they have names."""
    return rows.set_axis(range(len(rows))) if hasattr(rows, "set_axis") else rows


def _names(documents):
    """Return the names of documents, or None; what a list calls `index` is something else."""
    return documents.index if hasattr(documents, "set_axis") else None


def _largest(shares):
    best = np.argsort(-shares, kind="stable")[:_TOPICS]
    return [[int(t), panels.short(shares[t])] for t in best]


def _reader(documents, texts, words):
    """Return the function from a row to the text that is shown of it."""
    if texts is not None:
        texts = list(texts)
        return lambda row: _beginning(texts[row])
    if getattr(documents, "ndim", 1) == 2 and documents.shape[1] > 1:
        counts = scipy.sparse.csr_array(documents)
        return lambda row: _frequent(dict(zip(*_entries(counts[[row]]))), words)
    rows = documents if isinstance(documents, list | tuple) else np.asarray(documents).ravel()
    return lambda row: _read(rows[row], words)


def _read(document, words):
    """Return the text of a document that is a text, words, a dict or pairs (id, count)."""
    if isinstance(document, str):
        return _beginning(document)
    if isinstance(document, dict):
        return _frequent(document, None)
    if len(document) and isinstance(document[0], list | tuple | np.ndarray):
        return _frequent({int(i): n for i, n in document}, words)
    return _beginning(" ".join(map(str, document)))


def _entries(row):
    row = row.tocoo()
    return row.col.tolist(), row.data.tolist()


def _frequent(counts, words):
    """Return the most frequent words of word, or its number, -> count."""
    best = sorted(counts, key=lambda word: -counts[word])[:_WORDS]
    return " ".join(str(word if words is None else words[word]) for word in best)


def _beginning(text):
    line = " ".join(text[: 8 * _LONGEST].split())
    return line if len(line) <= _LONGEST else line[:_LONGEST].rsplit(" ", 1)[0] + " …"
