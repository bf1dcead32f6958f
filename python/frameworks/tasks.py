"""The tasks, for every framework: train, feature_selection, hyperparameter_tuning, distributed_training."""

import gc
import itertools
import math
import time

from .common import Folds, Refused, Region, Scratch, hold_out, invalid, largest, make_data, part_seed, unsupported

LISTED_MAX = 200  # features and importances in the result; more are counted
HELD_OUT = 5  # one row of so many is for the accuracy


def run(job):
    """Does JOB; returns what goes into the metrics file."""
    job.adapter.load()
    with Scratch() as scratch:
        try:
            job.adapter.start(job, scratch)
            return _run(job)
        except ValueError as e:  # values that each may be and together may not: the framework says which
            raise invalid(f"{job.adapter.NAME} refuses this: {' '.join(str(e).split())[:400]}") from e
        finally:
            job.adapter.stop()


def _run(job):
    adapter = job.adapter
    train, test = hold_out(make_data(job.seed, job.rows, job.features), HELD_OUT)
    adapter.prepare(train)
    adapter.prepare(test)
    region = Region(adapter.elsewhere())
    model, columns, found = _TASKS[job.task](job, train, region)
    if columns is not None:
        train, test = adapter.columns(train, columns), adapter.columns(test, columns)
    model = model or adapter.fit(job.algorithm, job.parameters, train, part_seed(job.seed))
    result = {"framework": adapter.NAME, "task": job.task, "algorithm": job.algorithm,
              "accuracy": adapter.accuracy(model, test)}
    result["lossFunction"], result["trainingLoss"] = adapter.loss(model, train)
    _add_importances(result, adapter.importances(model), train.names)
    result.update(found)
    result["parameters"] = _parameters(job, model, found.get("bestParams", job.parameters))
    return {"region": region.seconds, "datasetSize": job.rows, "nFeatures": job.features, "ml": finite(result)}


def _add_importances(result, values, names):
    if values is None:
        return
    kept = sorted(range(len(names)), key=lambda i: (-float(values[i]), i))[:LISTED_MAX]
    result["featureImportances"] = {names[i]: float(values[i]) for i in kept}
    if len(kept) < len(names):
        result["featureImportancesTotal"] = len(names)


def _same(asked, found):
    """Whether a parameter arrived: frameworks keep numbers in their own width, and lists as tuples."""
    if isinstance(asked, (list, tuple)) and isinstance(found, (list, tuple)):
        return len(asked) == len(found) and all(map(_same, asked, found))
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in (asked, found)):
        return type(asked) is type(found) and asked == found
    return math.isclose(asked, found, rel_tol=1e-6, abs_tol=1e-12)


def _parameters(job, model, asked):
    """What is in effect, read back from the fitted model and the framework. What was asked for and is not there is an
    error: its measurement would be one of something else."""
    found = {name: plain(value) for name, value in job.adapter.parameters_of(job.algorithm, model).items()}
    found.update((name, value) for name, value in job.settings.items() if value is not None)
    found.update(job.adapter.options_of())
    for name, value in {**asked, **job.options}.items():
        if name not in found or not _same(value, found[name]):
            raise Refused("ParameterLost", f"parameter {name} was given as {value!r}, and the fitted model has "
                                           f"{found.get(name, 'none')!r}")
    return found


def plain(value):
    """VALUE in types that JSON has: arrays' numbers become ours, tuples lists."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.item() if hasattr(value, "item") else value


def finite(value):
    """VALUE without anything that is no number: JSON has no NaN."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items() if not (isinstance(v, float) and not math.isfinite(v))}
    return [finite(v) for v in value] if isinstance(value, list) else value


# --- train --------------------------------------------------------------------------


def _train(job, train, region):
    with region:
        model = job.adapter.fit(job.algorithm, job.parameters, train, part_seed(job.seed))
    return model, None, {}


def _distribute(job, train, region):
    with region:
        model = job.adapter.distribute(job, train)
    return model, None, {}


# --- feature_selection ----------------------------------------------------------------


def _weights(job, data):
    adapter = job.adapter
    weights = adapter.weights(adapter.fit(job.algorithm, job.parameters, data, part_seed(job.seed)))
    if weights is None:
        raise unsupported(f"{adapter.NAME} has no importances of this {job.algorithm}, which the method "
                          f"{job.settings['method']} needs; use the method filter, or another algorithm")
    return weights


def _eliminate(job, data, count):
    """Recursive feature elimination: fits, drops the least important, fits again."""
    job.settings["step"] = step = job.settings["step"] or max(1, len(data.names) // 10)
    left = list(range(len(data.names)))
    while len(left) > count:
        kept = largest(_weights(job, data), max(count, len(left) - step))
        left = [left[i] for i in kept]
        data = job.adapter.columns(data, kept)
    return left


def _select(job, train, region):
    method, count = job.settings["method"], job.settings["n_select"]
    with region:
        if method == "filter":
            kept = job.adapter.choose(job, train, count)
        elif method == "wrapper":
            kept = _eliminate(job, train, count)
        else:
            kept = largest(_weights(job, train), count)
    found = {"selectedFeatures": [train.names[i] for i in kept[:LISTED_MAX]]}
    if len(kept) > LISTED_MAX:
        found["selectedFeaturesTotal"] = len(kept)
    return None, kept, found


# --- hyperparameter_tuning --------------------------------------------------------------


def try_one(shared, parameters):
    """One combination over the folds of a round, where the framework runs it: (mean accuracy, seconds)."""
    adapter, algorithm, pairs, seed = shared

    def score(pair):
        began = time.perf_counter()
        accuracy = adapter.accuracy(adapter.fit(algorithm, parameters, pair[0], seed), pair[1])
        return accuracy, time.perf_counter() - began

    return _together(map(score, pairs))  # a loop would keep its pair while the next one is made


def _together(tried):
    """The mean of the scores, and all seconds."""
    scores, seconds = zip(*tried)
    return sum(scores) / len(scores), sum(seconds)


def _tune(job, train, region):
    adapter, seed = job.adapter, part_seed(job.seed)
    combinations = [{**job.parameters, **dict(zip(job.grid, values))} for values in itertools.product(*job.grid.values())]

    def search(pairs):
        with region:
            tried = adapter.search(try_one, (adapter.worker(), job.algorithm, pairs, seed), combinations)
        adapter.release(pairs)
        gc.collect()  # what ran in parallel refers to itself, and to the data
        return tried

    tried = list(map(_together, zip(*map(search, adapter.rounds(Folds(train, job.settings["cv"]))))))
    best = max(range(len(tried)), key=lambda i: (tried[i][0], -i))
    with region:
        model = adapter.fit(job.algorithm, combinations[best], train, seed)
    trials = [{"params": params, "score": score, "seconds": seconds}
              for params, (score, seconds) in zip(combinations, tried)]
    return model, None, {"bestParams": combinations[best], "trials": trials}


_TASKS = {"train": _train, "feature_selection": _select, "hyperparameter_tuning": _tune,
          "distributed_training": _distribute}
