"""tomotopy behind the few calls that the topic benchmarks need."""

import time
import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tomotopy

EXTRA_ITERATIONS = 100  # to infer the shares of a new document; its default
CONCENTRATION = 0.05


class Tomotopy:
    """A tomotopy model on one thread, with the CPU time that its training took."""

    def __init__(self, kind, counts, vocabulary, n_topics, *, seed=42, eta=CONCENTRATION):
        """Make a model; kind is "lda", whose alpha is learned, or "ctm"."""
        settings = {"k": n_topics, "eta": eta, "seed": seed}
        if kind == "lda":
            self.model = tomotopy.LDAModel(alpha=0.1, **settings)
        else:
            self.model = tomotopy.CTModel(**settings)
        self.vocabulary, self.seconds = vocabulary, 0.0
        for words in self._texts(counts):
            self.model.add_doc(words)
        self.train(0)
        order = {word: i for i, word in enumerate(self.model.used_vocabs)}
        self._columns = [order[word] for word in vocabulary]

    @property
    def n_iterations(self):
        return self.model.global_step

    def train(self, n_iterations):
        start = time.process_time()
        self.model.train(n_iterations, workers=1)
        self.seconds += time.process_time() - start

    def topics(self):
        """Return (T, V) in the order of the vocabulary."""
        rows = [self.model.get_topic_word_dist(t) for t in range(self.model.k)]
        return np.stack(rows)[:, self._columns]

    def proportions(self, counts):
        """Return the shares of topics (n, T) of new documents; one without words has the average."""
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        average = np.mean([d.get_topic_dist() for d in self.model.docs], axis=0)
        shares = np.tile(average, (counts.shape[0], 1))
        known = np.flatnonzero(lengths)
        texts = [self.model.make_doc(words) for words in self._texts(counts[known])]
        shares[known] = self.model.infer(texts, iterations=EXTRA_ITERATIONS, workers=1)[0]
        return shares

    def _texts(self, counts):
        for start, stop in zip(counts.indptr[:-1], counts.indptr[1:]):
            cells = np.repeat(counts.indices[start:stop], counts.data[start:stop])
            yield [self.vocabulary[i] for i in cells]
