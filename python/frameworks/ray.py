"""Ray: scikit-learn's estimators as tasks of a cluster, its own or one that is there; tuning by Ray Tune."""

import importlib
import os

from .common import cpus, text, unavailable, whole
from .sklearn import Spread


class Ray(Spread):
    NAME = "ray"
    MODULES = ("ray", "sklearn")
    NEEDS = "the packages ray (for hyperparameter_tuning ray[tune]) and scikit-learn"
    OPTIONS = {"address": text(), "num_cpus": whole(1, 1024)}

    def __init__(self):
        self._ray = self._tune = self._address = self._scratch = None

    def start(self, job, scratch):
        super().start(job, scratch)
        ray, self._scratch = importlib.import_module("ray"), scratch
        if job.task == "hyperparameter_tuning":
            try:
                self._tune = importlib.import_module("ray.tune")
            except ImportError as e:
                raise unavailable(f"Ray Tune is not in this image ({e}): it needs the package ray[tune]; name an image that "
                                  "has it with the operator's --ml-image") from e
        # Its workers have never heard of these modules: they go along with what is sent.
        for name in ("", ".common", ".tasks", ".sklearn"):
            ray.cloudpickle.register_pickle_by_value(importlib.import_module(__package__ + name))
        self._address = job.options.get("address") or os.environ.get("RAY_ADDRESS")
        if not self._address:
            ray.init(num_cpus=job.options.get("num_cpus", cpus()), include_dashboard=False, log_to_driver=False)
        else:
            try:
                ray.init(address=self._address)
            except (ConnectionError, RuntimeError) as e:
                raise unavailable(f"no ray cluster answers at {self._address} ({e}): set address or RAY_ADDRESS, or leave both "
                                  "out for a cluster inside the pod") from e
        self._ray = ray

    def stop(self):
        if self._ray is not None:
            self._ray.shutdown()

    def elsewhere(self):
        return self._address is not None

    def options_of(self):
        found = {"num_cpus": int(self._ray.cluster_resources().get("CPU", 0))}
        if self._address:
            found["address"] = self._address
        return found

    def map(self, function, shared, items):
        task, together = self._ray.remote(function), self._ray.put(shared)
        return self._ray.get([task.remote(together, item) for item in items])

    def rounds(self, pairs):
        return [pairs]  # one run of Ray Tune, whose trials go over all folds and make them where they run

    def search(self, function, shared, combinations):
        def trial(config, attempt, shared, combinations):
            score, seconds = attempt(shared, combinations[config["combination"]])
            return {"score": score, "seconds": seconds, "combination": config["combination"]}

        analysis = self._tune.run(
            self._tune.with_parameters(trial, attempt=function, shared=shared, combinations=combinations),
            config={"combination": self._tune.grid_search(list(range(len(combinations))))},
            metric="score", mode="max", storage_path=self._scratch, verbose=0)
        results = sorted((t.last_result for t in analysis.trials), key=lambda result: result["combination"])
        return [(result["score"], result["seconds"]) for result in results]


ADAPTER = Ray
