"""A run starts by naming what a model lacks."""

from dataclasses import dataclass

import numpy as np
import pytest

from polystick.inference.execution import Serial, Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.protocols import (
    BatchModel,
    Execution,
    Extras,
    GibbsModel,
    Held,
    VariationalModel,
    check_model,
    members,
    missing,
)
from polystick.inference.stochastic import StochasticVI
from toy_model import Toy

X = np.arange(6.0)


def without(*names):
    """Return a toy that has no such methods."""
    return type("Lacking", (Toy,), dict.fromkeys(names))()


def refusal(schedule, model):
    with pytest.raises(TypeError) as caught:
        schedule.run(model, model.shards(X), seed=0)
    return str(caught.value)


@pytest.mark.parametrize("schedule", [MeanField(), StochasticVI()])
def test_what_is_missing_is_named_and_what_works_is_offered(schedule):
    said = refusal(schedule, without("update_rows", "elbo"))
    assert said.startswith("Lacking has no ")
    assert said.endswith("mean field: `update_rows`, `elbo` are missing; use Gibbs()")


def test_a_model_without_batches_has_a_mean_field():
    said = refusal(StochasticVI(), without("blend", "draw_rows"))
    assert said == "Lacking has no stochastic mean field: `blend` is missing; use MeanField()"


def test_a_model_without_a_sweep_is_offered_its_ascent():
    said = refusal(Gibbs(2, 0), without("draw_rows"))
    assert said == "Lacking has no Gibbs sampler: `draw_rows` is missing; use MeanField()"


def test_a_model_without_any_is_sent_to_the_protocol():
    said = refusal(Gibbs(2, 0), without("draw_rows", "elbo"))
    assert said.endswith("polystick.inference.protocols.GibbsModel says what each gets and returns")


def test_a_stream_is_checked_too():
    model = without("scale")
    with pytest.raises(TypeError, match="`scale` is missing"):
        StochasticVI().start(model, model.shards(X), seed=0, corpus_size=9)


@dataclass(frozen=True)
class OldToy(Toy):
    def initial_parameters(self, key):
        raise NotImplementedError


@dataclass(frozen=True)
class SettlingToy(Toy):
    def settle(self, parameters, statistics):
        raise NotImplementedError


@pytest.mark.parametrize("kind", [OldToy, SettlingToy])
def test_arguments_are_checked_before_the_first_sweep(kind):
    name = "settle" if kind is SettlingToy else "initial_parameters"
    said = refusal(Gibbs(2, 0), kind())
    assert said.startswith(f"{kind.__name__}.{name} must take (")
    assert "key" in said.split("; got")[0]


def test_a_right_model_passes_and_runs():
    for schedule in ("Gibbs", "MeanField", "StochasticVI"):
        check_model(Toy(), schedule)
    assert missing(Toy(), BatchModel) == []


def test_each_method_says_what_it_gets_and_returns():
    for protocol in (GibbsModel, VariationalModel, BatchModel, Extras):
        for name in members(protocol):
            member = next(vars(base)[name] for base in protocol.__mro__ if name in vars(base))
            assert member.__doc__, name
            function = getattr(member, "fget", member)
            arguments = set(members(protocol)[name] or ())
            assert {*arguments, "return"} == set(function.__annotations__), name


def test_executions_hold_what_they_promise():
    for execution in (Serial(), Threads(2)):
        assert missing(execution, Execution) == []
        with execution as mapping:
            held = mapping.hold(Toy(), Toy().shards(X), 2)
        assert missing(held, Held) == []
