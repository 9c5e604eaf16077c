"""`polystick warmup`: compile what models need, before their first fit."""

import time

import click

from polystick.commands.speech import say


class Model(click.ParamType):
    """A model that can be warmed up; which there are is looked up when one is named, for it takes long."""

    name = "model"

    def convert(self, value, param, ctx):
        from polystick.warmup import names

        return click.Choice(names()).convert(value, param, ctx)


@click.command()
@click.argument("models", nargs=-1, type=Model())
def warmup(models):
    """Compile what MODELS need (default: all), by all cores; it is done once for each version.

    softmax-multinomial and softmax-regression are for --link softmax, dynamic is DynamicMultinomial. Without
    this command the first fit of a model compiles what it needs. Machine code lies in the folder
    NUMBA_CACHE_DIR, or next to the sources, or in your own folder for such things.

    Example: polystick warmup topics
    """
    from polystick.warmup import warm_up

    begun = time.perf_counter()
    n_compiled = warm_up(*models)
    if n_compiled:
        seconds = time.perf_counter() - begun
        say(f"{n_compiled} kernels compiled in {seconds:.0f} seconds")
    else:
        say("all is compiled already")
