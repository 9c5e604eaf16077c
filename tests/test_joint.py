"""The joint test on a law of two normals: it passes what is right, and finds what is wrong without waste."""

import numpy as np
import pytest

from joint import Law, first_and_second, gap_in_errors, looks_up_to
from statistics_tools import MAX_Z, SURE_Z


def simulate(rng):
    x = rng.standard_normal()
    return x, x + rng.standard_normal()


def sweep_with(variance):
    """Return a sweep that is right if x given y, whose mean is y/2, has variance 1/2."""

    def resample(everything, i, rng):
        x = 0.5 * everything[1] + np.sqrt(variance) * rng.standard_normal()
        return x, x + rng.standard_normal()

    return resample


def counted(resample):
    """Return the sweep, and a list with an entry for each time it is called."""
    calls = []
    return lambda *given: calls.append(0) or resample(*given), calls


@pytest.fixture
def law():
    return Law(simulate, lambda everything: first_and_second([everything]))


def test_right_sweeps_pass_at_every_look(law):
    right = sweep_with(0.5)
    for seed in range(15):
        assert np.abs(law.z(right, 700, np.random.default_rng(seed))).max() < MAX_Z
        assert law.worst_z(right, 700, np.random.default_rng(seed)) < MAX_Z


@pytest.mark.parametrize("wrong", [sweep_with(1.5), sweep_with(0.1)])
def test_a_bad_sweep_is_found_early(law, wrong):
    wrong, calls = counted(wrong)
    assert law.worst_z(wrong, 5000, np.random.default_rng(0)) > SURE_Z
    assert len(calls) < 2500


def test_a_slightly_wrong_sweep_is_found_by_the_last_look(law):
    """None of the looks before is so sure."""
    wrong, calls = counted(sweep_with(0.62))
    assert MAX_Z < law.worst_z(wrong, 5000, np.random.default_rng(0)) < SURE_Z
    assert len(calls) == 5000


def test_a_sweep_that_stands_still_is_found(law):
    still = lambda everything, i, rng: (3.0, 3.0)
    assert law.worst_z(still, 400, np.random.default_rng(0)) > SURE_Z


def test_what_never_varies_is_no_evidence():
    """The mean of many times 0.1 is not 0.1, and has no error."""
    law = Law(simulate, lambda everything: np.array([everything[0], 0.1, -np.pi]))
    assert law.worst_z(sweep_with(0.5), 400, np.random.default_rng(0)) < MAX_Z
    other = Law(simulate, lambda everything: np.array([everything[0] > 9.0]) + 1e-9)
    assert other.worst_z(lambda *given: (10.0, 10.0), 400, np.random.default_rng(0)) > SURE_Z


@pytest.mark.parametrize("n_direct", [4000, 40_000])
def test_what_never_varies_is_no_evidence_however_often_it_is_seen(n_direct):
    """Sums round the more the longer they are, and batches of a constant may all round alike."""
    constants = np.array([np.log(1.5), 0.1, 1e9 / 3, -np.pi])
    direct = np.tile(constants, (n_direct, 1))
    for n in looks_up_to(4000):
        assert (gap_in_errors(np.tile(constants, (n, 1)), direct, early=n < 4000) == 0).all()
    assert (np.abs(gap_in_errors(direct * (1 + 1e-9), direct)) > SURE_Z).all()


def test_what_is_thought_right_must_not_be_found_wrong_early(law):
    with pytest.raises(AssertionError, match="call it wrong too early"):
        law.z(sweep_with(1.5), 2000, np.random.default_rng(0))


def test_direct_draws_are_made_once_and_are_the_same_whoever_asks():
    drawn = []
    laws = [Law(lambda rng: drawn.append(0) or simulate(rng), np.array) for _ in range(2)]
    short, long = laws[0].direct(5), laws[0].direct(9)
    assert len(drawn) == 9
    np.testing.assert_array_equal(short, long[:5])
    np.testing.assert_array_equal(laws[1].direct(9), long)


@pytest.mark.parametrize("n_iter", [100, 150, 151, 400, 5000])
def test_looks_grow_up_to_all_sweeps(n_iter):
    looks = looks_up_to(n_iter)
    assert looks[-1] == n_iter
    assert (np.diff(looks) > 0).all()
    assert min(looks) == min(150, n_iter)
