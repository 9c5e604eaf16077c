import numba
import numpy as np
from scipy import stats

from polystick.kernels import kernel, streams
from statistics_tools import MAX_Z, MIN_P, chi_square_pvalue, ks_pvalue, z_scores

N_ROWS = 100 if numba.config.DISABLE_JIT else 10_000
KEY = np.uint64(0x1234_5678_9ABC_DEF0)


def normals(key, rows, n_columns=20):
    out = np.empty((len(rows), n_columns))
    streams.fill_normals(key, rows, out)
    return out


def ids(n, start=0):
    return np.arange(start, start + n, dtype=np.uint64)


@kernel
def fill_bits(key, rows, out):
    for i in range(out.shape[0]):
        s0, s1 = streams.open_stream(key, rows[i])
        for j in range(out.shape[1]):
            out[i, j], s0, s1 = streams.next_bits(s0, s1)


@kernel
def fill_uniforms(key, rows, out):
    for i in range(out.shape[0]):
        s0, s1 = streams.open_stream(key, rows[i])
        for j in range(out.shape[1]):
            out[i, j], s0, s1 = streams.uniform(s0, s1)


def bits(key, rows, n_columns=2):
    out = np.empty((len(rows), n_columns), np.uint64)
    fill_bits(key, rows, out)
    return out


def naive_bits(s0, s1, n):
    """Return n outputs of xoroshiro128++ in Python's integers."""
    mask, out = 2**64 - 1, []

    def rotate(x, k):
        return (x << k | x >> (64 - k)) & mask

    for _ in range(n):
        out.append((rotate((s0 + s1) & mask, 17) + s0) & mask)
        s1 ^= s0
        s0, s1 = (rotate(s0, 49) ^ s1 ^ (s1 << 21)) & mask, rotate(s1, 28)
    return out


def test_the_generator_is_xoroshiro():
    state = streams.open_stream(KEY, np.uint64(3))
    expected = naive_bits(*map(int, state), 50)
    assert bits(KEY, ids(1, 3), 50)[0].tolist() == expected


def test_bits_are_pinned():
    assert [hex(b) for b in bits(KEY, ids(2)).ravel()] == [
        "0xccce628a41a565fa",
        "0x7876f599fbd9ba23",
        "0x554634fe82d64c6a",
        "0x45154576a6216357",
    ]


def test_normals_are_pinned():
    assert [x.hex() for x in normals(KEY, ids(1), 4)[0]] == [
        "0x1.0cd53debb408fp-2",
        "-0x1.1b90a522ec97dp-3",
        "-0x1.3e5a54f42bb2bp-2",
        "-0x1.2bdd18e5af7dbp-2",
    ]


def test_a_row_depends_on_its_id_only():
    whole = normals(KEY, ids(10))
    np.testing.assert_array_equal(normals(KEY, ids(4, 6)), whole[6:])
    np.testing.assert_array_equal(normals(KEY, ids(10)[::-1].copy(), 7), whole[::-1, :7])


def test_normals_follow_the_normal_law():
    draws = normals(KEY, ids(N_ROWS))
    assert ks_pvalue(draws, stats.norm.cdf) > MIN_P
    flat = draws.ravel()
    powers = np.stack([flat, flat**2, flat**3, flat**4], 1)
    assert np.abs(z_scores(powers, [0, 1, 0, 3])).max() < MAX_Z


def test_normals_reach_the_tail():
    draws = normals(KEY, ids(N_ROWS * 10)).ravel()
    edges = np.array(
        [-np.inf, -4.0, -streams.TAIL_START, -3.0, 3.0, streams.TAIL_START, 4.0, np.inf]
    )
    expected = np.diff(stats.norm.cdf(edges)) * draws.size
    counts = np.histogram(draws, edges)[0]
    enough = expected > 5
    scores = (counts - expected)[enough] / np.sqrt(expected[enough])
    assert np.abs(scores).max() < MAX_Z
    assert (np.abs(draws) > streams.TAIL_START).any()


def test_a_ziggurat_without_its_tail_is_noticed():
    draws = np.random.default_rng(0).standard_normal(200_000)
    draws = draws[np.abs(draws) < 3.0]
    assert np.abs(z_scores(draws**4, 3.0)) > MAX_Z


def test_uniforms_fill_the_unit_interval():
    draws = np.empty((N_ROWS, 20))
    fill_uniforms(KEY, ids(N_ROWS), draws)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts = np.histogram(draws, 100, (0, 1))[0]
    assert chi_square_pvalue(counts, np.full(100, draws.size / 100)) > MIN_P


def pair_pvalue(first, second, shift):
    """Return the p-value of independence of four bits of each."""
    a, b = (((x >> np.uint64(shift)) & np.uint64(15)).astype(int) for x in (first, second))
    counts = np.bincount(16 * a + b, minlength=256)
    return chi_square_pvalue(counts, np.full(256, len(first) / 256))


def test_streams_are_independent():
    n = 20 * N_ROWS
    here, next_key = bits(KEY, ids(n)), bits(KEY + np.uint64(1), ids(n))
    pairs = {
        "neighbouring rows": (here[:-1, 0], here[1:, 0]),
        "first and second word": (here[:, 0], here[:, 1]),
        "neighbouring keys": (here[:, 0], next_key[:, 0]),
        "row + 1, key + 1": (here[1:, 0], next_key[:-1, 0]),
    }
    for name, (a, b) in pairs.items():
        correlation = np.corrcoef(a.astype(float), b.astype(float))[0, 1]
        assert abs(correlation) * np.sqrt(len(a)) < MAX_Z, name
        for shift in (60, 30, 0):
            assert pair_pvalue(a, b, shift) > MIN_P, (name, shift)


def test_rows_and_keys_do_not_collide():
    words = [bits(np.uint64(key), ids(1000))[:, 0] for key in range(20)]
    assert len(np.unique(words)) == 20_000


def test_ragged_normals_are_those_of_the_rows():
    starts, out = np.array([0, 3, 3, 4]), np.empty(4)
    streams.fill_ragged_normals(KEY, ids(3), starts, out)
    whole = normals(KEY, ids(3), 3)
    np.testing.assert_array_equal(out, [*whole[0], whole[2, 0]])


def test_one_signature():
    normals(KEY, ids(2))
    if not numba.config.DISABLE_JIT:
        assert len(streams.fill_normals.signatures) == 1
