"""tune.run with grid_search; trials run in the worker, one after the other."""

import inspect
import os

import ray


def grid_search(values):
    assert isinstance(values, list) and values
    return {"grid_search": values}


def with_parameters(trainable, **kwargs):
    assert inspect.isfunction(trainable), "`tune.with_parameters() only works with function trainables or classes"
    parameters = list(inspect.signature(trainable).parameters)
    assert parameters[0] == "config" and set(kwargs) <= set(parameters[1:]), (parameters, kwargs)
    together = ray.put(kwargs)

    def inner(config):
        return trainable(config, **ray.get(together))

    inner.parts = (trainable, kwargs)
    return inner


class Trial:
    def __init__(self, config, last_result):
        self.config, self.last_result = config, last_result


class ExperimentAnalysis:
    def __init__(self, trials):
        self.trials = trials


def run(run_or_experiment, *, name=None, metric=None, mode=None, stop=None, time_budget_s=None, config=None,
        resources_per_trial=None, num_samples=1, storage_path=None, storage_filesystem=None, search_alg=None, scheduler=None,
        checkpoint_config=None, verbose=None, progress_reporter=None, log_to_file=False, max_failures=0, fail_fast=False,
        restore=None, resume=None, reuse_actors=False, raise_on_failed_trial=True, callbacks=None,
        max_concurrent_trials=None):  # pylint: disable=unused-argument
    assert mode in ("min", "max") and isinstance(metric, str)
    assert storage_path is None or os.path.isabs(storage_path) and os.path.isdir(storage_path), storage_path
    (key, space), = config.items()
    function, named = run_or_experiment.parts
    trials = []
    for value in space["grid_search"]:
        result = ray.call(function, {key: value}, **named)
        assert isinstance(result, dict) and metric in result, f"the trainable did not report {metric}"
        trials.append(Trial({key: value}, {**result, "time_total_s": 1.0, "training_iteration": 1}))
    return ExperimentAnalysis(trials[::-1])  # in no order that could be relied on
