"""Keys: every place, sweep, chain and row has its own stream."""

import numpy as np

from polystick.keys import Key

ROWS = np.arange(5, dtype=np.uint64)


def test_everything_changes_the_stream():
    keys = [Key(1, 1), Key(1, 2), Key(2, 1), Key(1, 1).chain(0), Key(1, 1).chain(1), Key(11, 1)]
    bits = {int(key.at(site)) for key in keys for site in ("omega", "psi")}
    assert len(bits) == 2 * len(keys)
    drawn = {key.generator(site).random() for key in keys for site in ("omega", "psi")}
    assert len(drawn) == 2 * len(keys)


def test_the_same_key_gives_the_same_bits():
    one, two = Key(2**200, 7), Key(2**200, 7)
    assert one.at("psi") == two.at("psi")
    np.testing.assert_array_equal(one.normals("psi", ROWS, 4), two.normals("psi", ROWS, 4))


def test_a_row_keeps_its_noise_in_any_company():
    key = Key(3, 1)
    whole = key.normals("psi", ROWS, 4)
    np.testing.assert_array_equal(key.normals("psi", ROWS[[4, 1]], 4), whole[[4, 1]])


def test_golden_bits():
    """Published: a change here changes every result."""
    assert int(Key(1, 2).at("omega")) == GOLDEN


GOLDEN = 15607993128667790883
