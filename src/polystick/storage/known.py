"""The closed list of classes that a model file may name: what is not here is neither written nor read.

Where a fitted attribute holds something new, add its class under the module where it lives: a dataclass, a
named tuple or a plain object whose attributes are of kinds that `values` knows. A class that moves keeps its
name in files: say so in `_MOVED`.
"""

import functools
import importlib

__all__ = ["class_of", "fields_of", "function_of", "name_of", "name_of_function"]

_OURS = {
    "baselines.hidden_markov": ("HiddenMarkov",),
    "baselines.lda": ("DirichletTopics",),
    "baselines.logistic_normal": ("ModalShares", "ModalWords"),
    "baselines.logistic_normal_dynamics": ("LogisticNormalDynamics",),
    "baselines.logistic_normal_process": ("LogisticNormalProcess",),
    "baselines.multinomial_models": ("DirichletMultinomial",),
    "baselines.probit": ("ProbitRegression",),
    "baselines.process_models": ("LogisticNormalGP", "RawGP", "Static"),
    "baselines.process_regression": ("Grid", "Regression"),
    "baselines.raw_dynamics": ("RawDynamics",),
    "baselines.regression_models": ("MultinomialProbit",),
    "baselines.sequence_models": (
        "LogisticNormalLDS",
        "MultinomialHMM",
        "RawLDS",
        "SmoothedUnigram",
    ),
    "baselines.topic_models": ("LDA", "LogisticNormalTopicModel"),
    "baselines.unigram": ("Unigram",),
    "conjugate": ("InverseWishart", "NormalInverseWishart", "NormalParameters"),
    "conjugate_dynamics": ("DynamicsParameters", "InverseGamma", "MatrixNormalInverseWishart"),
    "covariances": ("OnColumns", "Separable"),
    "covariances.families": (
        "DenseFamily",
        "MarkovFamily",
        "SeparableFamily",
        "UnstructuredFamily",
    ),
    "covariances.own_noise": ("OwnNoise",),
    "decomposition": ("Decomposition",),
    "design": ("Design",),
    "estimators.composition": ("DynamicMultinomial",),
    "estimators.dynamic_topics": ("DynamicTopicModel",),
    "estimators.dynamics": ("MultinomialLDS",),
    "estimators.groupings": ("Grouping",),
    "estimators.inputs": ("Categories", "Merged"),
    "estimators.multinomial": ("CorrelatedMultinomial",),
    "estimators.prevalence": ("Columns", "Prevalence"),
    "estimators.process": ("MultinomialGP",),
    "estimators.regression": ("MultinomialRegression",),
    "estimators.sequences": ("Read",),
    "estimators.time_slices": ("TimeSlices",),
    "estimators.topics": ("CorrelatedTopicModel",),
    "inference.gibbs": ("Gibbs",),
    "inference.mean_field": ("MeanField",),
    "inference.posterior": ("Posterior",),
    "inference.stochastic": ("StochasticVI", "Stream"),
    "modelling.face": ("Estimator",),
    "models.composition": ("CompositionDynamics",),
    "models.dynamics": ("MultinomialDynamics",),
    "models.dynamics_laws": ("DynamicsFactor", "EmissionFactor"),
    "models.memory": ("Memory",),
    "models.multinomial": ("CorrelatedCounts",),
    "models.process": ("ProcessCounts",),
    "models.process_factors": ("KernelFactor",),
    "models.regressed_shares": ("RegressedShares",),
    "models.regressed_walk": ("RegressedWalk",),
    "models.regression": ("StickRegression",),
    "models.regression_factors": ("RegressionFactor",),
    "models.regression_state": ("RegressionPrior",),
    "models.seeded_words": ("Seed", "SeededWords"),
    "models.softmax_counts": ("SoftmaxCounts",),
    "models.softmax_link": ("Softmax",),
    "models.softmax_regression": ("SoftmaxRegression",),
    "models.switching": ("SwitchingDynamics",),
    "models.topic_agreement": ("Agreement",),
    "models.topic_factors": ("TopicFactor", "VariationalTopicModel"),
    "models.topic_shares": ("NormalShares", "Sticks"),
    "models.topic_words": ("DirichletWords",),
    "models.topics": ("TopicModel",),
    "models.tree_words": ("TreeWords",),
    "models.walking_shares": ("WalkingShares",),
    "models.walking_words": ("WalkingWords",),
    "population.huang_wand": ("HuangWand", "SpreadFactor"),
    "population.learned_scale": ("LearnedScale", "ScaledFactor"),
    "population.sparse_factors": ("SparseFactors",),
}
_OTHERS = {
    "sklearn.feature_extraction.text": ("CountVectorizer",),
    "sklearn.gaussian_process.kernels": (
        "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern",
        "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    ),
}  # fmt: skip
_FUNCTIONS = {"itself": "polystick.estimators.texts"}
_MOVED: dict[str, str] = {}  # name in files -> name of now


@functools.cache
def _classes():
    """Return name in files -> module, of all classes that are known."""
    ours = {f"{m}.{name}": f"polystick.{m}" for m, names in _OURS.items() for name in names}
    return ours | {f"{m}.{name}": m for m, names in _OTHERS.items() for name in names}


def name_of(kind):
    """Return the name of a class in files, or None if it is not known."""
    name = f"{kind.__module__.removeprefix('polystick.')}.{kind.__qualname__}"
    return name if name in _classes() else None


def class_of(name):
    """Return the class that a file names; one that is not on the list is not even looked for."""
    name = _MOVED.get(name, name)
    home = _classes().get(name)
    if home is None:
        raise ValueError(f"it names {str(name)[:80]!r}, which is no class that this version knows")
    return getattr(importlib.import_module(home), name.rpartition(".")[2])


def fields_of(kind):
    """Return the names of the parts of a named tuple."""
    return kind._fields


def name_of_function(function):
    """Return the name of a function in files, or None if it is not known."""
    return next((name for name in _FUNCTIONS if function_of(name) is function), None)


def function_of(name):
    """Return the function that a file names."""
    if name not in _FUNCTIONS:
        raise ValueError(
            f"it names {str(name)[:80]!r}, which is no function that this version knows"
        )
    return getattr(importlib.import_module(_FUNCTIONS[name]), name)
