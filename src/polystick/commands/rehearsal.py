"""A fit without a folder to write to: what it would do, and how long it would take on this machine."""

import itertools
import statistics
import time
import warnings

from polystick.commands import models
from polystick.commands.speech import say

_BURN, _DRAWS = 2, 4  # sweeps that are timed


def rehearse(kind, data, options):
    """Tell what a fit would do; a few sweeps are run for the time that they take."""
    say(f"It would take {_many(data.names)} for categories.")
    if options["mean_field"] or options.get("svi"):
        say("It would climb a bound until a sweep gains little.")
    else:
        say(f"It would run {_plan(options)}.")
        say("Timing a few sweeps ...", err=True)
        shortest, longest = _seconds(kind, data, options)
        span = spoken(shortest)
        if spoken(longest) != span:
            span = f"{span} to {spoken(longest)}, for it ends when chains agree"
        say(f"On this machine that takes about {span}.")
    say("Nothing was kept: add --out RUN to do it.")


def _many(names):
    shown = ", ".join(map(str, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _plan(options):
    burn, draws, most = options["burn"], options["draws"], options["max_draws"]
    plan = f"{options['chains']} chains of {burn} sweeps to forget and {draws} draws"
    if options["min_ess"]:
        plan += (
            f", or up to {most} for {options['min_ess']} effective draws of all that is diagnosed"
        )
    return plan


def _seconds(kind, data, options):
    """Return the least and the most time of a run: its start, and sweeps as long as those of a trial."""
    short = {"burn": _BURN, "draws": _DRAWS, "min_ess": 0, "max_draws": None}
    ticks = [time.perf_counter()]
    estimator = models.make_estimator(
        kind,
        {**options, **short},
        len(data.names),
        progress=lambda progress: ticks.append(time.perf_counter()),
        vectorizer=data.vectorizer,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a run has not converged
        estimator.fit(*data.arguments, **data.about)
    sweep = statistics.median(b - a for a, b in itertools.pairwise(ticks[1:]))
    begin = ticks[1] - ticks[0]
    lengths = (options["draws"], options["max_draws"] or options["draws"])
    return [begin + sweep * (options["burn"] + n_draws) for n_draws in lengths]


def spoken(seconds):
    """Return a time as one says it."""
    for limit, unit, name in (
        (90, 1, "second"),
        (5400, 60, "minute"),
        (float("inf"), 3600, "hour"),
    ):
        if seconds < limit:
            n = max(1, round(seconds / unit))
            return f"{n} {name}{'s'[: n != 1]}"
    raise AssertionError("unreachable")
