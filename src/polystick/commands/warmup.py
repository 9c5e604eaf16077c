"""`polystick warmup`: compile what models need, before their first fit."""

import time

import click

from polystick.commands.speech import say
from polystick.warmup import names, warm_up


@click.command()
@click.argument("models", nargs=-1, type=click.Choice(names()))
def warmup(models):
    """Compile what MODELS need (default: all), by all cores; it is done once for each version.

    softmax-multinomial and softmax-regression are for --link softmax, dynamic is DynamicMultinomial. Without
    this command the first fit of a model compiles what it needs. Machine code lies in the folder
    NUMBA_CACHE_DIR, or next to the sources, or in your own folder for such things.

    Example: polystick warmup topics
    """
    begun = time.perf_counter()
    n_compiled = warm_up(*models)
    if n_compiled:
        seconds = time.perf_counter() - begun
        say(f"{n_compiled} kernels compiled in {seconds:.0f} seconds")
    else:
        say("all is compiled already")
