"""Nodes find a place near their friends and off each other's labels."""

import numpy as np

from polystick import layout


def groups(n=12):
    together = np.kron(np.eye(3), np.ones((n // 3, n // 3)))
    return np.where(np.eye(n) > 0, 1.0, np.where(together > 0, 0.7, -0.2)), together > 0


def test_friends_are_close():
    similarity, together = groups()
    at = layout.place(similarity, np.maximum(similarity, 0))
    assert at.min() >= 0
    assert at.max() <= 1
    distance = np.linalg.norm(at[:, None] - at[None], axis=2)
    inside = distance[together & ~np.eye(12, dtype=bool)]
    assert inside.mean() < 0.6 * distance[~together].mean()
    np.testing.assert_array_equal(at, layout.place(similarity, np.maximum(similarity, 0)))


def test_nodes_that_are_all_alike_still_spread():
    for k in (1, 2, 3, 9):
        for similarity in (np.ones((k, k)), np.eye(k)):
            at = layout.place(similarity, np.zeros((k, k)))
            assert np.isfinite(at).all()
            assert at.shape == (k, 2)
            distance = np.linalg.norm(at[:, None] - at[None], axis=2) + 9 * np.eye(k)
            assert distance.min() > 0.1


def overlaps(at, boxes):
    gap = np.abs(at[:, None] - at[None])
    overlap = (boxes[:, None] + boxes[None]) / 2 - gap
    return np.triu((overlap > 0.11).all(axis=2), 1).sum()


def test_boxes_are_moved_apart_within_the_room():
    rng = np.random.default_rng(0)
    room, boxes = np.array([560.0, 530.0]), rng.uniform([40, 25], [70, 40], (50, 2))
    start = room * (0.3 + 0.4 * rng.random((50, 2)))
    assert overlaps(start, boxes) > 50
    at = layout.separate(start, boxes, room)
    assert overlaps(at, boxes) == 0
    assert np.all(at >= boxes / 2 - 1e-9)
    assert np.all(at <= room - boxes / 2 + 1e-9)


def test_boxes_in_one_place_are_moved_apart():
    boxes = np.full((4, 2), 10.0)
    at = layout.separate(np.full((4, 2), 50.0), boxes, np.array([100.0, 100.0]))
    assert overlaps(at, boxes) == 0


def test_boxes_that_are_apart_stay():
    start = np.array([[20.0, 20.0], [80.0, 70.0]])
    at = layout.separate(start, np.full((2, 2), 10.0), np.array([100.0, 100.0]))
    np.testing.assert_array_equal(at, start)


def test_boxes_larger_than_the_room_stay_finite():
    at = layout.separate(np.zeros((3, 2)), np.full((3, 2), 50.0), np.array([20.0, 20.0]))
    np.testing.assert_array_equal(at, 10)
