"""A corpus in parts is fitted to the same bits wherever its parts are, and mapped part by part."""

import numpy as np
import pytest
import scipy.sparse

from polystick import Corpus, CorrelatedTopicModel, Gibbs, MeanField, StochasticVI
from polystick.models import warm_start
from topic_tools import JIT

SHORT = Gibbs(n_draws=4, n_burn=4, n_chains=2) if JIT else Gibbs(n_draws=2, n_burn=1, n_chains=1)
SCHEDULES = [
    SHORT,
    MeanField(tolerance=1e-2, max_sweeps=4 if JIT else 1, n_draws=2),
    StochasticVI(batch_size=16, n_passes=2 if JIT else 1, n_draws=2),
]


@pytest.fixture(autouse=True)
def short_start(monkeypatch):
    """A good start takes longer than all of these runs."""
    for name, value in {"N_SWEEPS": 6, "N_TRIAL": 3, "MOST_STARTS": 1}.items():
        monkeypatch.setattr(warm_start, name, value)


@pytest.fixture(scope="module")
def parts():
    rng, sizes = np.random.default_rng(3), (700, 90, 1, 300) if JIT else (12, 9)
    topics = rng.dirichlet(np.full(40, 0.1), 3)
    made = []
    for n in sizes:
        words = rng.dirichlet(np.full(3, 0.3), n) @ topics
        made.append(scipy.sparse.csr_array(rng.multinomial(12, words).astype(np.int32)))
    return made


@pytest.fixture(scope="module")
def folder(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for number, counts in enumerate(parts):
        scipy.sparse.save_npz(folder / f"part-{number:05d}.npz", counts, compressed=number == 1)
    return folder


def fit(X, schedule, n_jobs=1, **options):
    model = CorrelatedTopicModel(
        3, inference=schedule, random_state=5, n_jobs=n_jobs, progress=False, **options
    )
    return model.fit(X)


def same(left, right):
    assert set(left.posterior_.names()) == set(right.posterior_.names())
    for name in left.posterior_.names():
        np.testing.assert_array_equal(left.posterior_[name], right.posterior_[name])
    for one, other in zip(*(m.posterior_.running("proportions") for m in (left, right))):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("schedule", SCHEDULES, ids=["gibbs", "mean field", "svi"])
def test_on_disk_in_memory_and_on_threads(schedule, parts, folder):
    on_disk, in_memory = fit(Corpus(folder), schedule, 2), fit(Corpus.of(parts), schedule)
    same(on_disk, in_memory)
    shares = on_disk.transform(Corpus(folder))
    np.testing.assert_array_equal(shares, in_memory.transform(scipy.sparse.vstack(parts)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("schedule", SCHEDULES, ids=["gibbs", "mean field", "svi"])
def test_one_part_is_a_matrix(schedule, parts):
    same(fit(Corpus.of(parts[:1]), schedule), fit(parts[0], schedule))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_parts_end_is_part_of_the_result(parts):
    whole = fit(scipy.sparse.vstack(parts), SHORT)
    in_parts = fit(Corpus.of(parts), SHORT)
    assert (whole.posterior_["cov"] != in_parts.posterior_["cov"]).any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_dask_array_is_a_corpus_of_its_chunks(parts):
    import dask.array as da

    blocks = [da.from_array(part, chunks=part.shape, asarray=False) for part in parts]
    array = da.concatenate(blocks)
    same(fit(array, SHORT), fit(Corpus.of(parts), SHORT))
    with pytest.raises(ValueError, match="all words in each chunk; got chunks"):
        fit(array.rechunk({1: 20}), SHORT)


class PulledError(RuntimeError):
    pass


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("schedule", SCHEDULES, ids=["gibbs", "mean field", "svi"])
def test_a_run_on_disk_goes_on(schedule, folder, tmp_path):
    def pull(progress):
        if progress.sweep == (2 if JIT else 1):
            raise PulledError

    options = {"checkpoint": tmp_path / "run", "checkpoint_every": 1e-6}
    model = CorrelatedTopicModel(3, inference=schedule, random_state=5, **options)
    with pytest.raises(PulledError):
        model.set_params(progress=pull).fit(Corpus(folder))
    resumed = model.set_params(progress=False).fit(Corpus(folder), resume=True)
    same(resumed, fit(Corpus(folder), schedule))
    if schedule is SHORT:
        assert len(list((tmp_path / "run").glob("polystick-rows-*"))) == len(Corpus(folder).parts)


def test_scores_are_those_of_the_parts(parts, folder):
    model = fit(parts[0], MeanField(tolerance=1e-2, max_sweeps=60, n_draws=2))
    scored = model.score_samples(Corpus(folder), n_draws=2)
    np.testing.assert_array_equal(
        scored, np.concatenate([model.score_samples(part, n_draws=2) for part in parts])
    )
    assert np.isfinite(model.score(Corpus(folder), n_draws=2))
    options = {"return_draws": True, "n_draws": 2}
    shares, draws = model.transform(Corpus(folder), **options)
    each = [model.transform(part, **options) for part in parts]
    np.testing.assert_array_equal(shares, np.concatenate([mean for mean, _ in each]))
    np.testing.assert_array_equal(draws, np.concatenate([drawn for _, drawn in each], axis=1))
    with pytest.raises(TypeError, match="got a corpus in parts: give one part of it"):
        model.predict_counts(Corpus(folder))


def test_a_corpus_of_other_words_is_refused(parts, folder):
    model = fit(parts[0], MeanField(tolerance=1e-2, max_sweeps=60, n_draws=2))
    with pytest.raises(ValueError, match="must have the 40 categories seen in fit; got 39"):
        model.transform(Corpus.of([parts[0][:, :39]]))
    with pytest.raises(ValueError, match="must have the words of the fit, in their order"):
        model.transform(Corpus.of(parts, words=[f"w{k}" for k in range(40)]))
    with pytest.raises(
        ValueError, match=r"whole numbers for Gibbs sampling, in arrays of integers"
    ):
        fit(Corpus.of([parts[0].astype(float)]), SHORT)
    with pytest.raises(ValueError, match="looks at all documents at once, and got a corpus"):
        fit(Corpus.of(parts), SHORT, word_tree="similar")
