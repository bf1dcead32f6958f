"""XGBoost: forests by parallel trees of one round, linear models by gblinear."""

import importlib
import json

from .common import Adapter, cpus, number, whole, word

LINEAR = {"num_boost_round": whole(1, 100000), "learning_rate": number(0, above=True), "reg_lambda": number(0),
          "reg_alpha": number(0)}
ROUNDS = 50  # of linear models, where nobody says how many


class Xgboost(Adapter):
    NAME = "xgboost"
    MODULES = ("xgboost",)
    NEEDS = "the package xgboost (1.6 or newer)"
    TASKS = ("train", "feature_selection", "hyperparameter_tuning")
    OPTIONS = {"nthread": whole(1, 1024)}
    ALGORITHMS = {
        "random_forest": {
            "num_parallel_tree": whole(1, 100000), "max_depth": whole(0), "learning_rate": number(0, above=True),
            "subsample": number(0, 1, above=True), "colsample_bynode": number(0, 1, above=True),
            "min_child_weight": number(0), "min_split_loss": number(0), "reg_lambda": number(0), "reg_alpha": number(0),
            "max_bin": whole(2), "tree_method": word("auto", "exact", "approx", "hist")},
        "logistic_regression": LINEAR,
        "svm": LINEAR,
    }
    GRIDS = {
        "random_forest": {"num_parallel_tree": [50, 100], "max_depth": [5, 10]},
        "logistic_regression": {"reg_lambda": [0.0, 0.01, 0.1]},
        "svm": {"reg_lambda": [0.0, 0.01, 0.1]},
    }

    def __init__(self):
        self._threads = 1

    def start(self, job, scratch):
        self._threads = job.options.get("nthread", cpus())

    def options_of(self):
        return {"nthread": self._threads}

    def prepare(self, data):
        data.native = importlib.import_module("xgboost").DMatrix(data.x, label=data.y, feature_names=data.names,
                                                                 nthread=self._threads)
        return data

    def fit(self, algorithm, parameters, data, seed):
        given = {"nthread": self._threads, "seed": seed, "verbosity": 0}
        if algorithm == "random_forest":
            given.update(booster="gbtree", objective="binary:logistic", num_parallel_tree=100, learning_rate=1.0,
                         subsample=0.8, colsample_bynode=0.8)
        else:
            # Coordinates in turn: the other updater races with itself, and no two runs are the same.
            given.update(booster="gblinear", updater="coord_descent",
                         objective="binary:logistic" if algorithm == "logistic_regression" else "binary:hinge")
        given.update(parameters)
        rounds = given.pop("num_boost_round", 1 if algorithm == "random_forest" else ROUNDS)
        model = importlib.import_module("xgboost").Booster(given, [data.native])
        for number_of_round in range(rounds):  # train() returns a copy, in which gblinear's parameters are the defaults
            model.update(data.native, number_of_round)
        return model

    def outputs(self, model, data):
        margins = model.predict(data.native, output_margin=True)
        if '"binary:hinge"' in model.save_config():
            return "margin", margins
        np = importlib.import_module("numpy")
        return "probability", 1 / (1 + np.exp(-np.asarray(margins, dtype=float)))

    def parameters_of(self, algorithm, model):
        found, config = {}, json.loads(model.save_config())
        for name in self.ALGORITHMS[algorithm]:
            value = find(config, name)
            if name == "num_boost_round":
                found[name] = model.num_boosted_rounds()
            elif value is not None:
                found[name] = _number(value)
        return found

    def importances(self, model):
        kind = "weight" if '"gblinear"' in model.save_config() else "gain"
        scores = model.get_score(importance_type=kind)
        return [abs(float(scores.get(name, 0.0))) for name in model.feature_names]


def find(tree, name):
    """The first value of that name, at any depth: versions of XGBoost keep it in different places."""
    if isinstance(tree, dict):
        if name in tree and not isinstance(tree[name], (dict, list)):
            return tree[name]
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            value = find(branch, name)
            if value is not None:
                return value
    return None


def _number(value):
    """XGBoost writes numbers as texts, and has them in single precision."""
    try:
        return int(value)
    except ValueError:
        try:
            return float(f"{float(value):.7g}")
        except ValueError:
            return value


ADAPTER = Xgboost
