"""Figure 4: gains, their errors and verdicts are right; a tiny run leaves all that a big one does."""

import os

import numba
import numpy as np
import pandas as pd
import pytest

from polystick import paper
from polystick.baselines.sequence_models import SmoothedUnigram
from polystick.paper import report, sequences, sequences_lines
from polystick.paper import sequences_tasks as tasks
from polystick.paper.sequences_tasks import BALANCED, FITTED, HMM, LNM, RAW, SBM, UNIGRAM, ZERO

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="needs the compiler: fits of six models")
needs_data = pytest.mark.skipif(
    "POLYSTICK_DATA" not in os.environ, reason="needs the files in the folder POLYSTICK_DATA"
)


def silent(sentence):
    pass


def some_task(name, n_sequences=1, n_tokens=40, n_held_out=5):
    rng = np.random.default_rng(0)
    sequences = [rng.integers(4, size=n_tokens) for _ in range(n_sequences)]
    return tasks.Task(name, sequences, n_held_out, 6, 1.0, 1.0, 1.0)


@pytest.fixture(autouse=True, scope="module")
def few_bootstraps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "N_BOOT", 50)
        yield


# data and baselines


def test_the_papers_zero_is_clipped_and_not_smoothed():
    task = tasks.Task("a", [np.array([0, 0, 0, 1, 0, 2])], 2, 4, 1.0, 1.0, 1.0)
    np.testing.assert_allclose(np.exp(tasks.log_frequencies(task)), [0.75, 0.25, 1e-8, 1e-8])
    assert task.n_new == 1
    assert tasks.zero_score(task) == pytest.approx((np.log(0.75) + np.log(1e-8)) / 2)


@needs_data
def test_the_data_are_those_of_the_paper():
    dna, articles, alice = tasks.load_tasks()
    assert (dna.n_seen, dna.n_categories) == ([672], 22)
    assert np.mean([len(each) for each in articles.sequences]) == 77
    assert (len(articles.sequences), articles.n_held_out, articles.n_categories) == (20, 10, 200)
    assert (alice.n_seen, alice.n_held_out, alice.n_categories) == ([3900], 100, 1000)
    pieces = tasks.load_pieces(3)
    assert [(each.n_seen, each.n_held_out) for each in pieces] == [([682], 300)] * 3
    np.testing.assert_array_equal(pieces[0].sequences[0][:682], dna.sequences[0])
    assert not np.array_equal(pieces[1].sequences[0], pieces[2].sequences[0])


# scores


@pytest.fixture(scope="module")
def scored():
    """Return scores and units of an HMM and the unigram, on one sequence and on many."""
    plans = {HMM: tasks.Plan(10, 4, 2)}
    one = some_task("one")
    return {
        task.name: (task, *tasks.score_all(task, plans, silent))
        for task in (one, some_task("many", n_sequences=6))
    }


def test_models_get_the_scores_of_their_own_face(scored):
    task, scores, _ = scored["many"]
    assert list(scores.model) == [ZERO, HMM, HMM, UNIGRAM]
    unigram = SmoothedUnigram(n_categories=6).fit(task.train)
    line = scores.set_index("model").loc[UNIGRAM]
    assert line.one_step == pytest.approx(unigram.score(task.sequences, n_seen=task.n_seen))
    joint = unigram.score(task.sequences, n_seen=task.n_seen, joint=True)
    assert line.joint == pytest.approx(joint)
    assert line.joint != line.one_step
    hmm = scores[scores.model == HMM]
    model = tasks.make(HMM, task, tasks.halves(10), 0).fit(task.train)
    for kind in ("one_step", "joint"):
        expected = model.score(task.sequences, n_seen=task.n_seen, joint=kind == "joint", n_draws=4)
        assert hmm[kind].iloc[0] == pytest.approx(expected)
    assert hmm.one_step.iloc[0] != hmm.one_step.iloc[1]  # seeds


@pytest.mark.parametrize("name", ["one", "many"])
def test_what_the_bootstrap_draws_adds_up_to_the_score(scored, name):
    task, scores, units = scored[name]
    for model in (ZERO, HMM, UNIGRAM):
        mine = units[units.model == model]
        assert len(mine) == (task.n_held_out if name == "one" else len(task.sequences))
        expected = scores[scores.model == model].one_step.iloc[0]
        np.testing.assert_allclose(mine.value.sum() / mine.n_tokens.sum(), expected, rtol=1e-9)
    found = tasks.difference(units, task.name, HMM, ZERO)
    by_model = scores.drop_duplicates("model").set_index("model").one_step
    assert found.estimate == pytest.approx(by_model[HMM] - by_model[ZERO])
    assert found.lower < found.estimate < found.upper


def test_gains_are_taken_seed_by_seed():
    lines = [["a", ZERO, 0, -3.0, -3.0, 0.0], ["a", UNIGRAM, 0, -2.0, -2.5, 0.0]]
    lines += [["a", HMM, seed, -1.0 + seed, -2.0, 1.0] for seed in (0, 1)]
    lines += [["b", ZERO, piece, -3.0 - piece, -3.0, 0.0] for piece in (0, 1)]
    lines += [["b", UNIGRAM, piece, -3.0 - piece, -3.0, 0.0] for piece in (0, 1)]
    lines += [["b", HMM, piece, -2.0 - piece, -2.0, 1.0] for piece in (0, 1)]
    table = tasks.summarise(pd.DataFrame(lines, columns=tasks.SCORES)).set_index(["task", "model"])
    mine = table.loc["a", HMM]
    assert (mine.one_step_over_zero, mine.one_step_over_unigram, mine.joint_over_zero) == (
        2.5,
        1.5,
        1,
    )
    assert mine.one_step_over_zero_se == pytest.approx(0.5)
    pieces = table.loc["b", HMM]  # each has a zero of its own
    assert (pieces.one_step_over_zero, pieces.one_step_over_zero_se) == (1.0, 0.0)
    assert np.isnan(table.loc["a", ZERO].one_step_over_zero_se)


# verdicts


def some_results(advantage, noise=0.1, without=()):
    """Return results where SBM-LDS is so much better than all others, on each task."""
    rng = np.random.default_rng(0)
    scores, units = [], []
    for task, n in (("DNA", 10), ("AP", 200), ("Alice", 100)):
        for name in (ZERO, *tasks.MODELS):
            if name in without:
                continue
            level = {ZERO: -4.0, SBM: -3.0 + advantage}.get(name, -3.0)
            scores += [[task, name, seed, level, level, 1.0] for seed in (0, 1)]
            value = level + noise * rng.standard_normal(n)
            units.append(tasks._unit_table(some_task(task), name, [value]))
    units = pd.concat(units, ignore_index=True)
    table = sequences.bars_table(pd.DataFrame(scores, columns=tasks.SCORES), units)
    return sequences_lines.Results(table, units, some_curve(), {"DNA": 0, "AP": 9, "Alice": 8})


def some_curve(lnm=0.0):
    """Return scores against time; SBM-LDS ends at 0.5 after 2 seconds and is nearly there after 1."""
    lines = [["AP", SBM, n, n / 10, score] for n, score in ((2, 0.1), (10, 0.46), (20, 0.5))]
    lines += [["AP", HMM, n, n / 1000, 0.2] for n in (10, 1000)]
    lines += [["AP", LNM, n, 2.0 * n, lnm] for n in (2, 20)]
    columns = ["task", "model", "sweeps", "cpu_seconds", "one_step_over_zero"]
    return pd.DataFrame(lines, columns=columns)


def verdicts(results):
    return [line.verdict for line in sequences_lines.lines(results)[: len(sequences_lines.CLAIMS)]]


def test_verdicts_follow_the_numbers_and_their_errors():
    assert verdicts(some_results(1.0)) == ["differs", "agrees", "agrees", "agrees"]
    assert verdicts(some_results(-1.0)) == ["undecided", "differs", "differs", "differs"]
    assert verdicts(some_results(0.01, noise=1.0)) == ["undecided"] * 4


def test_a_model_that_was_not_run_is_named():
    lines = sequences_lines.lines(some_results(1.0, without=(LNM,)))
    assert "not run" in lines[2].why
    assert not any(line.what.startswith(f"Alice, {LNM}") for line in lines)


def test_times_to_the_same_score():
    never, cost = sequences_lines._time_lines(some_curve())
    assert never.verdict == "agrees"
    assert "1 s against not in 40 s: more than 40 times" in never.ours
    soon = sequences_lines._time_lines(some_curve(lnm=0.6))[0]
    assert (soon.verdict, soon.ours) == ("differs", "1 s against 4 s: 4 times")
    assert (cost.verdict, cost.ours.split()[0]) == ("differs", "100.0")


def test_the_reading_says_what_the_lines_say():
    text = sequences_lines.reading(some_results(1.0))
    assert text.count(": holds (") == 3
    assert text.count(": does not hold (") == 1
    assert "9 of 200 held-out words of AP and 8 of 100 of Alice" in text


# a whole run


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return the folder of a run on small data with few sweeps."""
    folder = tmp_path_factory.mktemp("sequences")
    three = [
        some_task("DNA"),
        some_task("AP", n_sequences=4),
        some_task("Alice"),
    ]
    plans = {name: tasks.Plan(4, 2, 1) for name in FITTED} | {HMM: tasks.Plan(4, 2, 2)}
    curve = {SBM: (2,), HMM: (2, 8), LNM: (2,)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "load_tasks", lambda: three)
        patch.setattr(sequences, "load_pieces", lambda n: [some_task("DNA, longer")] * n)
        without = {name: plan for name, plan in plans.items() if name != LNM}
        patch.setitem(sequences.PLANS, False, {"DNA": plans, "AP": plans, "Alice": without})
        patch.setitem(sequences.N_PIECES, False, 1)
        patch.setitem(sequences.PIECE_PLANS, False, plans)
        patch.setitem(sequences.SWEEPS, False, curve)
        patch.setitem(sequences.SCORED, False, dict.fromkeys(curve, 2))
        outcomes = paper.reproduce(["sequences"], folder, say=silent)
    assert [outcome.status for outcome in outcomes] == ["done"], outcomes
    return folder


@needs_jit
def test_a_run_leaves_pictures_tables_and_lines(tiny):
    for stem in ("figure4_bars", "figure4_time"):
        assert (tiny / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv(tiny / "figure4_bars.csv").set_index(["task", "model"])
    assert len(table) == 4 * 7 - 1  # one was not run
    (record,) = report.read_records(tiny)
    assert len(record["lines"]) == 5 + 2 + 4 * 6 - 1
    assert all(np.isfinite(table.loc["AP"].one_step_over_unigram))
    assert set(pd.read_csv(tiny / "figure4_time.csv").model) == {SBM, HMM, LNM}
    assert "left out on Alice" in record["settings"]["LNM-LDS"]


def test_settings_tell_what_is_run():
    full = sequences._settings(full=True)
    assert "Alice: 300 (LNM-LDS 20)" in full["sweeps in each of two chains, half forgotten"]
    assert "Alice: 5 (LNM-LDS 2)" in full["seeds"]
    assert "left out" not in full["LNM-LDS"]
    assert {BALANCED, RAW} < set(sequences.PLANS[False]["Alice"])
