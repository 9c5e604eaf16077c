"""Dependent multinomial models made easy: stick breaking with the Pólya-gamma augmentation.

Names are loaded when they are first used, so that `import polystick` takes milliseconds.
"""

import importlib

__version__ = "0.1.0.dev0"

_HOMES = {
    "Association": "estimators.association",
    "CheckpointError": "inference.files",
    "Corpus": "corpus",
    "CorrelatedMultinomial": "estimators.multinomial",
    "CorrelatedTopicModel": "estimators.topics",
    "Decoded": "baselines.state_paths",
    "Decomposition": "decomposition",
    "DirichletMultinomial": "baselines.multinomial_models",
    "DynamicMultinomial": "estimators.composition",
    "DynamicTopicModel": "estimators.dynamic_topics",
    "FilterState": "estimators.streams",
    "Filtered": "estimators.sequence_results",
    "Forecast": "estimators.sequence_results",
    "Gibbs": "inference.gibbs",
    "Interval": "estimators.intervals",
    "LDA": "baselines.topic_models",
    "LogisticNormalLDS": "baselines.sequence_models",
    "LogisticNormalTopicModel": "baselines.topic_models",
    "Likeliest": "estimators.sequence_results",
    "MeanField": "inference.mean_field",
    "MergedTopics": "estimators.merged_topics",
    "ModelFileError": "storage",
    "MultinomialGP": "estimators.process",
    "MultinomialHMM": "baselines.sequence_models",
    "MultinomialLDS": "estimators.dynamics",
    "MultinomialRegression": "estimators.regression",
    "NormalInverseWishart": "conjugate",
    "NotConverged": "gaussians.process",
    "Posterior": "inference.posterior",
    "Progress": "inference.progress",
    "RawLDS": "baselines.sequence_models",
    "Smoothed": "estimators.sequence_results",
    "SmoothedUnigram": "baselines.sequence_models",
    "StochasticVI": "inference.stochastic",
    "Updated": "estimators.streams",
    "alignment": None,
    "baselines": None,
    "cluster": "clusters.context",
    "choose_n_topics": "estimators.topic_choice",
    "coherence": None,
    "compare": "estimators.model_comparison",
    "covariances": None,
    "datasets": None,
    "decompose": "decomposition",
    "load": "storage",
    "modelling": None,
    "plots": None,
    "polyagamma": None,
    "scores": None,
    "texts": None,
    "topic_stability": "estimators.topic_stability",
    "warm_up": "warmup",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'polystick' has no attribute {name!r}")
    home = _HOMES[name]
    if home is None:
        return importlib.import_module(f"polystick.{name}")
    return getattr(importlib.import_module(f"polystick.{home}"), name)


def __dir__():
    return sorted([*globals(), *__all__])
