"""The schedules that a model may be run by."""

from typing import TypeAlias

from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.stochastic import StochasticVI

__all__ = ["Schedule"]

Schedule: TypeAlias = Gibbs | MeanField | StochasticVI
