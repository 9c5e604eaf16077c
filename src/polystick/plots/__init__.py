"""Pictures: axes in, axes out. They need matplotlib: pip install polystick[plot]."""

from polystick.plots.associations import association, association_graph
from polystick.plots.effects import effect_curves, effects
from polystick.plots.process import category_map, category_paths
from polystick.plots.sequences import forecast_fan, probability_paths, state_trajectories
from polystick.plots.style import COLOURS, NEGATIVE, OTHERS, POSITIVE
from polystick.plots.topic_choice import n_topics
from polystick.plots.topics import correlation, shares_over_time, topic_graph, topic_sizes, trace

__all__ = [
    "COLOURS",
    "NEGATIVE",
    "OTHERS",
    "POSITIVE",
    "association",
    "association_graph",
    "category_map",
    "category_paths",
    "correlation",
    "effect_curves",
    "effects",
    "forecast_fan",
    "n_topics",
    "probability_paths",
    "shares_over_time",
    "state_trajectories",
    "topic_graph",
    "topic_sizes",
    "trace",
]
