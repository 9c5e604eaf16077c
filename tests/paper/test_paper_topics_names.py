"""Figures 2 and 3: what is scored is what is said, and small runs give whole parts."""

import os

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from polystick import Gibbs, datasets, scores
from polystick.paper import name_lines, name_models, names, report, topic_curves, topics
from polystick.paper.parts import VERDICTS
from polystick.paper.topic_correlation import Correlations

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="whole experiments are too slow without compiled code")
needs_data = pytest.mark.skipif(
    not os.environ.get("POLYSTICK_DATA"), reason="needs the folder that POLYSTICK_DATA names"
)


def small(n_draws=4, n_burn=2):
    return Gibbs(n_draws=n_draws, n_burn=n_burn, n_chains=1)


TINY_NAMES = names.Settings(2005, 50, 2, small(), small(), (2, 4), (2, 4), small())
TINY_TOPICS = topics.Settings(200, (6, 5), 200, (32, 32, 32), 4, (2, 4))


def silent(sentence):
    pass


def refuse(*arguments, **options):
    raise FileNotFoundError("put the file there")


def check_part(part, folder):
    """Look that a part is whole, and that a report can be made of it."""
    assert {line.verdict for line in part.lines} <= set(VERDICTS)
    assert all(isinstance(text, str) for line in part.lines for text in line)
    assert "nan" not in " ".join(text for line in part.lines for text in line)
    report.write(folder, [part])
    for picture in part.pictures:
        assert (folder / f"{picture.name}.png").stat().st_size > 10_000
        assert len(pd.read_csv(folder / f"{picture.name}.csv")) == len(picture.table) > 0


# names


def test_births_are_those_of_48_states_and_100_names():
    births = name_models.load(2009)
    assert births.counts.shape == (5, 48, 100)
    assert len(set(births.names)) == 100
    assert not {*births.states} & {"AK", "HI", "DC"}
    table = datasets.load_names("M")
    place = births.states.index("TX"), births.names.index("Ethan")
    assert births.counts[3][place] == table.loc[(2012, "TX"), "Ethan"]
    inputs = births.inputs()
    assert inputs.shape == (3 * 48, 3)
    centre = datasets.load_state_centres().loc["TX"]
    np.testing.assert_array_equal(inputs[48 + place[0]], [2010, centre.longitude, centre.latitude])
    assert births.test.shape == (2 * 48, 100)


def test_a_sample_has_so_many_births_and_no_others():
    counts = np.array([[[30, 0, 40]], [[3, 4, 5]]])
    drawn = name_models.thinned(counts, 50, seed=1)
    np.testing.assert_array_equal(drawn.sum(axis=1), [50, 12])
    assert (drawn <= counts.reshape(2, 3)).all()


def test_a_printed_difference_is_judged_by_its_size():
    found = pd.Series([0.1, 0.2, 0.0, 0.15, 0.2])
    verdicts = [
        name_lines._difference("a", "", found, "", printed).verdict for printed in (None, 0.15, 0.6)
    ]
    assert verdicts == ["agrees", "agrees", "differs"]
    assert name_lines._difference("a", "", found - 0.1, "").verdict == "undecided"


def test_hits_are_counted_at_both_ends():
    truth = np.arange(40, 0, -1)[None]
    np.testing.assert_array_equal(name_models.hits(truth / truth.sum(), truth), [[10], [10]])
    np.testing.assert_array_equal(name_models.hits(-truth, truth), [[0], [0]])
    shifted = np.roll(truth, 3)  # the three rarest names are thought the most frequent
    np.testing.assert_array_equal(name_models.hits(shifted, truth), [[7], [7]])


def test_ties_go_by_order_or_by_chance():
    truth = np.zeros((1, 100), dtype=int)
    np.testing.assert_array_equal(name_models.hits(truth, truth), [[10], [10]])
    rng = np.random.default_rng(0)
    found = [name_models.hits(truth, truth, rng) for _ in range(400)]
    error = np.std(found) / np.sqrt(800)
    assert abs(np.mean(found) - 1.0) < 4 * error


@pytest.mark.parametrize("n_sweeps", [1, 2, 7, 64, 1000])
def test_runs_of_a_curve_keep_their_later_half(n_sweeps):
    run = name_models.later_half(n_sweeps)
    assert run.n_burn + run.n_draws * run.thin == n_sweeps
    assert run.n_burn >= n_sweeps // 2
    assert 1 <= run.n_draws <= name_models.MOST_DRAWS
    assert run.n_burn <= n_sweeps // 2 + run.thin or n_sweeps == 1


def made_trials(shift):
    rows = []
    for sample, noise in enumerate((-0.1, 0.0, 0.1)):
        for model in name_models.MODELS:
            printed = np.array(name_lines.PRINTED[model])
            row = dict(zip(name_models.COLUMNS, printed + noise + shift))
            gain = float(model != "Static") + noise * (model == "SBM-GP")
            rows.append({"sample": sample, "model": model, "gain": gain, "random_ties": 1.0, **row})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "agrees"), (1.0, "differs")])
def test_the_table_is_judged_by_the_spread_of_samples(shift, verdict):
    trials = made_trials(shift)
    lines = name_lines.table_lines(name_lines.summarise(trials), trials)
    assert [line.verdict for line in lines] == [verdict] * 8
    assert lines[3].paper == "7.3 / 4.0"
    assert lines[3].ours == f"{7.3 + shift:.2f} / {4.0 + shift:.2f}"
    assert lines[3].error == "0.06 / 0.06"


def test_a_curve_arrives_where_it_stays():
    gain = [0.2, 0.295, 0.25, 0.296, 0.3]
    curves = pd.DataFrame({"model": "SBM-GP", "seconds": [1, 2, 4, 8, 16], "gain": gain})
    assert name_lines.arrival(curves) == {"SBM-GP": 8}
    worse = curves.assign(model="LNM-GP", gain=np.array(gain) - 0.02)
    assert name_lines.arrival(pd.concat([curves, worse])) == {"SBM-GP": 8, "LNM-GP": np.inf}
    assert np.isfinite(name_lines.arrival(pd.concat([curves, worse]), own=True)["LNM-GP"])


@needs_jit
def test_figure_3_is_whole(tmp_path):
    part = names.run(False, silent, TINY_NAMES)
    check_part(part, tmp_path)
    assert [picture.name for picture in part.pictures] == [
        "names_paths",
        "names_map",
        "names_hits",
        "names_time",
    ]
    hits = part.pictures[2].table.set_index(["model", "column"])["mean"]
    assert hits["SBM-GP", "top_2012"] > hits["Static", "top_2012"] + 1


# topics


def made_task(n=40, V=30, seed=0):
    counts = scipy.sparse.csr_array(np.random.default_rng(seed).poisson(0.6, (n, V)))
    words = np.array([f"word{i}" for i in range(V)])
    corpus = topic_curves.Corpus("made", counts, words, 4, 0.1, 0.25)
    return topic_curves.hold_out(corpus), counts


def test_words_are_seen_or_held_out():
    task, counts = made_task()
    assert task.held_out.shape == (10, 30)
    both = task.seen.toarray()
    both[-10:] += task.held_out.toarray()
    np.testing.assert_array_equal(np.sort(both.sum(axis=1)), np.sort(counts.toarray().sum(axis=1)))
    np.testing.assert_array_equal(both.sum(axis=0), counts.toarray().sum(axis=0))
    shown, rest = both[-10:].sum() - task.held_out.sum(), task.held_out.sum()
    assert abs(shown - rest) <= 10


def test_averages_are_of_words_or_of_all_of_them():
    task, _ = made_task()
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.ones(4), (3, 40))
    beta = rng.dirichlet(np.ones(30), (3, 4))
    logs = topic_curves.cell_logs(shares, beta, task)
    usual, joint = topic_curves.averages(logs, task)
    documents = scores.completion(shares[:, -10:], beta, task.held_out)
    assert usual == pytest.approx(scores.per_count(documents, task.held_out))
    totals = [scores.completion([s[-10:]], [b], task.held_out).sum() for s, b in zip(shares, beta)]
    best = max(totals)
    by_hand = best + np.log(np.mean(np.exp(np.array(totals) - best)))
    assert joint == pytest.approx(by_hand / task.held_out.sum())
    assert joint != pytest.approx(usual, abs=1e-6)


def test_points_of_a_curve_end_at_its_last_draw():
    for n_draws in (1, 5, 95):
        found = topic_curves.stops(n_draws)
        assert found[-1] == n_draws
        assert (np.diff(found) > 0).all()
        assert found[0] == 1


def test_extreme_pairs_are_of_topics_that_are_not_small():
    mean = np.eye(5)
    for (i, j), value in {(0, 1): 0.5, (0, 4): 0.9, (1, 2): -0.4, (3, 4): -0.8}.items():
        mean[i, j] = mean[j, i] = value
    shares = np.array([0.3, 0.3, 0.19, 0.2, 0.01])
    found = Correlations(mean, mean - 0.1, mean + 0.1, shares, np.eye(5))
    assert {found.extreme(1).i, found.extreme(1).j} == {0, 1}
    assert {found.extreme(-1).i, found.extreme(-1).j} == {1, 2}
    even = found._replace(shares=np.full(5, 0.2))
    assert {even.extreme(1).i, even.extreme(1).j} == {0, 4}
    assert found.closest(("c", "c"), np.array(list("abcde"))) == 2
    assert found.closest(("c", "z"), np.array(list("abcde"))) is None


def test_the_closest_topic_has_all_of_the_words():
    one_word, all_three = [0.90, 0.001, 0.099], [0.3, 0.3, 0.4]
    found = Correlations(*[np.eye(2)] * 3, np.full(2, 0.5), np.array([one_word, all_three]))
    assert found.closest(("a", "b"), np.array(list("abc"))) == 1


def test_a_curve_that_never_arrives_is_none():
    table = pd.DataFrame({"seconds": [1.0, 2.0, 4.0], "usual": [-7.0, -6.5, -6.4]})
    curve = topic_curves.Curve("a", table, np.zeros(1), np.zeros(1), None)
    assert topics.arrival(curve, -6.45) == 4.0
    assert topics.arrival(curve, -8.0) == 1.0
    assert topics.arrival(curve, -6.0) is None


def test_without_ap_the_addresses_stand_in(monkeypatch):
    monkeypatch.setattr(datasets, "load_ap", refuse)
    monkeypatch.setattr(datasets, "load_20newsgroups", refuse)
    said = []
    corpora, absent = topics.load(TINY_TOPICS, said.append)
    assert [corpus.name for corpus in corpora] == [topics.ADDRESSES]
    assert absent == said == ["put the file there"] * 2
    assert corpora[0].counts.shape == (200, 200)


@needs_jit
@needs_data
def test_figure_2_is_whole_though_a_corpus_is_absent(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "load_20newsgroups", refuse)
    part = topics.run(False, silent, TINY_TOPICS)
    check_part(part, tmp_path)
    curves = part.pictures[1].table
    assert set(curves.model) == set(topic_curves.MODELS)
    assert "put the file there" in part.reading
    vocabulary = np.log(1 / TINY_TOPICS.n_words)
    ends = curves.groupby("model").usual.last()
    assert (ends > vocabulary + 0.1).all()  # better than no model
    assert (ends < -3).all()
    np.testing.assert_allclose(
        (curves.paper - curves.joint).to_numpy(), (curves.paper - curves.joint).iloc[0]
    )
