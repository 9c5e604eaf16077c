"""The pictures that suit each model: name of the file -> figure."""

import re

import numpy as np

__all__ = ["PICTURES", "graph_of_known"]

_PLACES = ({"lon", "lat"}, {"longitude", "latitude"})  # names of columns that make a map


def graph_of_known(association, labels=None, sizes=None):
    """Draw the associations that are known as a graph, at most about two for each node: the strongest."""
    from polystick import plots

    threshold = _threshold(association.mean.where(association.known, 0))
    looks = {"labels": labels, "sizes": sizes, "threshold": threshold}
    return plots.association_graph(association, **looks).figure


def _graph_of_topics(estimator, labels):
    """Draw the topics as a graph, with the lines that matter most: about two for each topic."""
    from polystick import plots

    correlation = estimator.topic_correlation().mean
    sizes = estimator.topic_sizes()["share"].sort_index()
    threshold = max(_threshold(correlation), 0.1)
    return plots.topic_graph(correlation, labels=labels, sizes=sizes, threshold=threshold).figure


def _threshold(correlation):
    """Return the size beyond which there are about two pairs for each entry, rounded up."""
    values = correlation.to_numpy()
    strength = np.sort(np.abs(values)[np.triu_indices(len(values), 1)])[::-1]
    wanted = strength[min(2 * len(values), len(strength) - 1)]
    return float(np.clip(np.ceil(20 * wanted) / 20, 0, 0.9))


def _topics(run):
    from polystick import plots
    from polystick.commands.views import topic_labels

    model, labels = run.estimator, topic_labels(run.estimator, run.names)
    yield "topic_graph", _graph_of_topics(model, labels)
    yield "topic_sizes", plots.topic_sizes(model.topic_sizes().rename(index=labels)).figure
    matrix = model.topic_correlation().mean.rename(index=labels, columns=labels)
    yield "correlation", plots.correlation(matrix).figure
    if model.prevalence is not None:
        yield from _effects_on_topics(model, labels)


def _effects_on_topics(model, labels):
    """Draw what each covariate does: curves along numbers, else changes between levels."""
    from polystick import plots

    doubled = labels.duplicated(keep=False)
    names = labels.where(~doubled, labels + " (" + labels.index.astype(str) + ")").to_dict()
    frame = model.prevalence_.frame
    for column in model.prevalence_.variables:
        file = _file_of(column)
        if frame[column].dtype.kind in "iuf" and frame[column].nunique() > 2:
            table = model.effect_curves(column).rename(index=names, level="topic")
            yield file, plots.effect_curves(table).figure
        else:
            table = model.effects(column)
            level = "topic" if table.index.nlevels > 1 else None
            yield file, plots.effects(table.rename(index=names, level=level)).figure


def _file_of(column):
    return f"effect_{re.sub(r'[^0-9A-Za-z]+', '_', str(column))}"


def _regression(run):
    """Draw what each covariate does: curves along numbers, else changes between levels."""
    import pandas as pd

    from polystick import plots
    from polystick.commands.views import category_effects

    model = run.estimator
    for column in model.design_.variables:
        changes = category_effects(model, column)
        if list(changes) == ["up by 1"]:
            figure = plots.effect_curves(model.effect_curves(column)).figure
        else:
            figure = plots.effects(pd.concat(changes, names=[str(column)])).figure
        yield _file_of(column), figure


def _multinomial(run):
    from polystick import plots

    model = run.estimator
    summary = model.summary()
    yield "shares", plots.topic_sizes(summary, label="share (%)").figure
    if model.link == "softmax":
        yield from _associations(run, summary["share"])
        return
    label = "correlation of log shares\n(not zero for independent categories)"
    yield "correlation", plots.correlation(model.log_share_correlation(), label=label).figure


def _associations(run, shares):
    from polystick import plots
    from polystick.commands.views import has_associations

    if has_associations(run):
        found = run.estimator.category_association()
        yield "association", plots.association(found).figure
        yield "association_graph", graph_of_known(found, sizes=shares)


def _gp(run):
    inputs = run.options["inputs"]
    if len(inputs) == 1:
        yield "paths", _paths_over_input(run)
    elif len(inputs) == 2:
        yield from _maps(run)


def _paths_over_input(run):
    import pandas as pd

    from polystick import plots

    model, (name,) = run.estimator, run.options["inputs"]
    seen = model.inputs_[:, 0]
    dense = np.union1d(seen, np.linspace(seen.min(), seen.max(), 200))
    mean, sd = model.predict_proba(pd.DataFrame({name: dense}), return_std=True, n_draws=64)
    lower, upper = (np.clip(mean + side * 1.645 * sd, 0, 1) for side in (-1, 1))  # 90 %
    return plots.category_paths(
        pd.Index(dense, name=name),
        mean,
        lower,
        upper,
        counts=model.counts_,
        counted_at=seen,
        labels=run.names,
    ).figure


def _maps(run, n_maps=3):
    """Draw maps of the largest categories."""
    import pandas as pd

    from polystick import plots

    model, inputs = run.estimator, run.options["inputs"]
    is_map = {name.lower() for name in inputs} in _PLACES
    places = pd.DataFrame(model.inputs_, columns=inputs)
    probabilities = model.predict_proba(places)
    if is_map and inputs[0].lower().startswith("lat"):  # east is to the right
        places = places[inputs[::-1]]
    for k in np.argsort(-probabilities.mean(axis=0), kind="stable")[:n_maps]:
        label = f"probability of {run.names[k]} (%)"
        looks = {"sizes": model.counts_.sum(axis=1), "label": label, "geographic": is_map}
        yield f"map_{k}", plots.category_map(places, probabilities[:, k], **looks).figure


def _lds(run):
    import pandas as pd

    from polystick import plots

    smoothed = run.estimator.smooth()[0]
    steps = pd.RangeIndex(1, len(smoothed.probabilities) + 1, name="step of the first sequence")
    bands = (smoothed.lower, smoothed.upper)
    paths = plots.category_paths(steps, smoothed.probabilities, *bands, labels=run.names)
    yield "paths", paths.figure


def trace_of(run):
    """Draw the log likelihood along the draws that were kept, where there are any."""
    from polystick import plots

    if not run.options["mean_field"]:
        yield "trace", plots.trace(run.estimator.posterior_).figure


PICTURES = {
    "topics": _topics,
    "multinomial": _multinomial,
    "regression": _regression,
    "gp": _gp,
    "lds": _lds,
}
