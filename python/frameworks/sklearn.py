"""scikit-learn. Its estimators are those of dask and ray as well, which spread them."""

import importlib
import threading

from .common import Adapter, Rule, cpus, null, number, part_seed, sizes, truth, whole, word

ALL = Rule("-1 (no limit)", lambda v: v == -1 and not isinstance(v, bool))
PARALLEL = {"n_jobs": whole(1, 1024) | ALL | null()}
FOREST = {
    "n_estimators": whole(1, 100000), "max_depth": whole(1) | null(), "criterion": word("gini", "entropy", "log_loss"),
    "min_samples_split": whole(2) | number(0, 1, above=True), "min_samples_leaf": whole(1) | number(0, 1, above=True),
    "max_features": word("sqrt", "log2") | whole(1) | number(0, 1, above=True) | null(),
    "max_leaf_nodes": whole(2) | null(), "min_impurity_decrease": number(0), "bootstrap": truth(),
    "max_samples": whole(1) | number(0, 1, above=True) | null(), "ccp_alpha": number(0), **PARALLEL,
}
LOGISTIC = {
    "C": number(0, above=True), "penalty": word("l1", "l2", "elasticnet") | null(), "l1_ratio": number(0, 1) | null(),
    "solver": word("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"), "max_iter": whole(1),
    "tol": number(0, above=True), "fit_intercept": truth(), **PARALLEL,
}
VECTORS = {  # with a kernel SVC, without one LinearSVC, which takes large data
    "C": number(0, above=True), "max_iter": whole(1) | ALL, "tol": number(0, above=True),
    "loss": word("hinge", "squared_hinge"), "fit_intercept": truth(), "kernel": word("linear", "rbf", "poly", "sigmoid"),
    "gamma": word("scale", "auto") | number(0, above=True), "degree": whole(1), "coef0": number(),
}
NETWORK = {
    "hidden_layer_sizes": sizes() | whole(1), "activation": word("identity", "logistic", "tanh", "relu"),
    "solver": word("lbfgs", "sgd", "adam"), "alpha": number(0), "batch_size": whole(1) | word("auto"),
    "learning_rate": word("constant", "invscaling", "adaptive"), "learning_rate_init": number(0, above=True),
    "max_iter": whole(1), "tol": number(0, above=True), "momentum": number(0, 1), "early_stopping": truth(),
}


class Turn:
    """One thread at a time. It can be sent to another process, where it begins anew."""

    def __init__(self):
        self._lock = threading.Lock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()

    def __reduce__(self):
        return Turn, ()


LIBLINEAR = Turn()  # its random numbers belong to the process: two threads would take them from each other


class Vote:
    """Models of the same kind that were trained on parts of the data: their outputs are averaged."""

    def __init__(self, models):
        self.models = models


class Sklearn(Adapter):
    NAME = "sklearn"
    MODULES = ("sklearn",)
    NEEDS = "the package scikit-learn (Debian's python3-sklearn)"
    ALGORITHMS = {"random_forest": FOREST, "logistic_regression": LOGISTIC, "svm": VECTORS, "neural_network": NETWORK}
    TASK_PARAMETERS = {"feature_selection": {"score_func": word("f_classif", "mutual_info_classif")}}
    GRIDS = {
        "random_forest": {"n_estimators": [50, 100], "max_depth": [5, 10, None]},
        "logistic_regression": {"C": [0.01, 0.1, 1.0, 10.0]},
        "svm": {"C": [0.01, 0.1, 1.0, 10.0]},
        "neural_network": {"hidden_layer_sizes": [[20], [50], [50, 20]], "alpha": [0.0001, 0.01]},
    }

    def estimator(self, algorithm, parameters, seed):
        """The estimator, not fitted."""
        part, name = {"random_forest": ("ensemble", "RandomForestClassifier"),
                      "logistic_regression": ("linear_model", "LogisticRegression"),
                      "svm": ("svm", "SVC" if "kernel" in parameters else "LinearSVC"),
                      "neural_network": ("neural_network", "MLPClassifier")}[algorithm]
        make = getattr(importlib.import_module("sklearn." + part), name)
        try:
            return make(random_state=seed, **parameters)
        except TypeError as e:  # of the two for svm only one knows it
            raise ValueError(f"{name} does not take all of {', '.join(parameters)} (svm: gamma, degree and coef0 go with "
                             "kernel; loss and fit_intercept without)") from e

    def start(self, job, scratch):
        self.estimator(job.algorithm, job.parameters, 0)  # imported here, and not where the time counts
        importlib.import_module("sklearn.feature_selection")

    def fit(self, algorithm, parameters, data, seed):
        estimator = self.estimator(algorithm, parameters, seed)
        if type(estimator).__name__ != "LinearSVC" and parameters.get("solver") != "liblinear":
            return estimator.fit(data.x, data.y)
        with LIBLINEAR:
            return estimator.fit(data.x, data.y)

    def outputs(self, model, data):
        if isinstance(model, Vote):
            several = [self.outputs(one, data) for one in model.models]
            return several[0][0], sum(values for _, values in several) / len(several)
        if hasattr(model, "predict_proba"):
            return "probability", model.predict_proba(data.x)[:, 1]
        return "margin", model.decision_function(data.x)

    def parameters_of(self, algorithm, model):
        if isinstance(model, Vote):
            return self.parameters_of(algorithm, model.models[0])
        found = {k: v for k, v in model.get_params().items() if k in self.ALGORITHMS[algorithm]}
        if algorithm == "random_forest":  # as the trees have it
            tree = model.estimators_[0].get_params()
            found.update((name, tree[name]) for name in ("max_depth", "criterion", "min_samples_leaf", "max_features"))
            found["n_estimators"] = len(model.estimators_)
        if algorithm == "neural_network" and not isinstance(found["hidden_layer_sizes"], int):
            found["hidden_layer_sizes"] = [layer.shape[1] for layer in model.coefs_[:-1]]
        return found

    def importances(self, model):
        if isinstance(model, Vote):
            several = [self.importances(one) for one in model.models]
            return None if several[0] is None else sum(several) / len(several)
        if hasattr(model, "feature_importances_"):
            return model.feature_importances_
        return abs(model.coef_).sum(0) if hasattr(model, "coef_") else None

    def weights(self, model):
        if hasattr(model, "coefs_"):  # a network: how strongly its first layer takes each feature up
            return abs(model.coefs_[0]).sum(1)
        return self.importances(model)

    def scores(self, job, data):
        np = importlib.import_module("numpy")
        job.settings.setdefault("score_func", "f_classif")
        chunks = np.array_split(data.x, min(8, data.x.shape[1]), axis=1)
        return np.concatenate(self.map(score_features, (data.y, job.settings["score_func"], part_seed(job.seed)), chunks))

    def map(self, function, shared, items):
        joblib = importlib.import_module("joblib")
        # Threads: fitting lets go of the interpreter, and nothing is copied.
        return joblib.Parallel(n_jobs=min(cpus(), len(items)), prefer="threads")(
            joblib.delayed(function)(shared, item) for item in items)

    def distribute(self, job, data):
        parts = job.settings["n_partitions"]
        several = split(job.algorithm, job.parameters, parts)
        items = [(parameters, data.rows(slice(i, None, len(several))), part_seed(job.seed, i))
                 for i, parameters in enumerate(several)]
        return merge(job.algorithm, self.map(fit_part, (self.worker(), job.algorithm), items))


def score_features(shared, x):
    """What each of some features says about the label, by itself."""
    y, name, seed = shared
    selection = importlib.import_module("sklearn.feature_selection")
    if name == "f_classif":
        return selection.f_classif(x, y)[0]
    return selection.mutual_info_classif(x, y, random_state=seed)


def fit_part(shared, item):
    adapter, algorithm = shared
    parameters, data, seed = item
    return adapter.fit(algorithm, parameters, data, seed)


def split(algorithm, parameters, parts):
    """The parameters of each part: a forest's trees are dealt out, anything else is trained alike on its rows."""
    if algorithm != "random_forest":
        return [parameters] * parts
    trees = parameters.get("n_estimators", 100)
    shares = [trees // parts + (i < trees % parts) for i in range(parts)]
    return [{**parameters, "n_estimators": share} for share in shares if share]


def merge(algorithm, models):
    """One model of the models of the parts."""
    if algorithm != "random_forest":
        return Vote(models)
    forest = models[0]
    for other in models[1:]:
        forest.estimators_ += other.estimators_
    forest.n_estimators = len(forest.estimators_)
    return forest


class Spread(Sklearn):
    """The same where map() goes to the workers of a cluster: a forest's trees are dealt out, anything else is fitted by one."""

    FOREST_PARTS = 4  # the same wherever it runs, so that a seed gives the same forest

    def worker(self):
        return Sklearn()  # without the connection, which stays here

    def fit(self, algorithm, parameters, data, seed):
        several = split(algorithm, parameters, self.FOREST_PARTS if algorithm == "random_forest" else 1)
        models = self.map(fit_part, (self.worker(), algorithm),
                          [(one, data, part_seed(seed, i)) for i, one in enumerate(several)])
        return merge(algorithm, models) if algorithm == "random_forest" else models[0]


ADAPTER = Sklearn
