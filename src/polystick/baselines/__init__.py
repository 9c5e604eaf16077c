"""What the models are compared with: the same faces, so that a comparison is a loop over them.

Names are loaded when they are first used.
"""

import importlib

_HOMES = {
    "DirichletMultinomial": "multinomial_models",
    "LDA": "topic_models",
    "LogisticNormalGP": "process_models",
    "LogisticNormalLDS": "sequence_models",
    "LogisticNormalTopicModel": "topic_models",
    "MultinomialHMM": "sequence_models",
    "MultinomialProbit": "regression_models",
    "RawGP": "process_models",
    "RawLDS": "sequence_models",
    "SmoothedUnigram": "sequence_models",
    "Static": "process_models",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'polystick.baselines' has no attribute {name!r}")
    return getattr(importlib.import_module(f"polystick.baselines.{_HOMES[name]}"), name)


def __dir__():
    return sorted([*globals(), *__all__])
