#!/usr/bin/python3
"""The adapters with frameworks as they are packaged: peers.py xgboost|pytorch

Every task, algorithm and method, the framework's own parameters, and the same model from the same seed.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from ml_runs import check, pod, reach_the_model, requests, run, timeless
from sonde_test import diag, main

BOOSTED = [{"num_boost_round": 7, "learning_rate": 0.25, "reg_lambda": 0.5, "reg_alpha": 0.25}]
TRAINED = {"lr": 0.02, "epochs": 7, "batch_size": 32, "weight_decay": 0.001, "optimizer": "SGD"}
SAMPLES = {
    "xgboost": {
        "random_forest": [{"num_parallel_tree": 7, "max_depth": 4, "learning_rate": 0.5, "subsample": 0.7,
                           "colsample_bynode": 0.6, "min_child_weight": 2, "min_split_loss": 0.5, "reg_lambda": 2,
                           "reg_alpha": 0.5, "max_bin": 64, "tree_method": "hist"}],
        "logistic_regression": BOOSTED, "svm": BOOSTED},
    "pytorch": {"logistic_regression": [TRAINED], "svm": [TRAINED], "neural_network": [{**TRAINED, "hidden_sizes": [7, 5]}]},
}
PACKAGES = {"xgboost": ("xgboost", "python3-xgboost"), "pytorch": ("torch", "python3-torch")}


def the_framework_is_there():
    module, package = PACKAGES[framework]
    try:
        diag(f"{module} {__import__(module).__version__}")
    except ImportError as e:
        raise AssertionError(f"{module} is missing; apt-get install {package}") from e


def it_does_every_task():
    done = [check(request, run(framework, **request)) for request in requests(framework)]
    assert len(done) >= 10, len(done)


def every_parameter_reaches_the_model():
    reach_the_model(framework, SAMPLES[framework])


def the_same_seed_gives_the_same_model():
    for request in list(requests(framework))[::3]:
        one, two = (timeless(run(framework, **request)) for _ in range(2))
        assert one == two, request


def sonde_pod_runs_it():
    code, metrics, err = pod({"framework": framework, "algorithm": "logistic_regression", "datasetSize": 600, "nFeatures": 20})
    assert code == 0 and metrics["ml"]["framework"] == framework and 0.65 < metrics["ml"]["accuracy"] <= 1, (code, metrics, err)


framework = sys.argv[1]
main(the_framework_is_there, it_does_every_task, every_parameter_reaches_the_model, the_same_seed_gives_the_same_model, sonde_pod_runs_it)
