"""A stand-in for XGBoost 2: DMatrix, train() and Booster, over scikit-learn."""

import json

import numpy
import sklearn.ensemble
import sklearn.linear_model
import sklearn.svm

TREE = {"max_depth": 6, "learning_rate": 0.3, "subsample": 1, "colsample_bynode": 1, "min_child_weight": 1,
        "min_split_loss": 0, "reg_lambda": 1, "reg_alpha": 0, "max_bin": 256}
LINEAR = {"learning_rate": 0.5, "reg_lambda": 0, "reg_alpha": 0}
LEARNER = ("booster", "objective", "nthread", "seed", "verbosity")


class DMatrix:
    def __init__(self, data, label=None, *, weight=None, base_margin=None, missing=None, silent=False, feature_names=None,
                 feature_types=None, nthread=None):  # pylint: disable=unused-argument
        self.x, self.label = numpy.asarray(data, dtype=numpy.float32), None if label is None else numpy.asarray(label)
        assert self.x.ndim == 2 and (label is None or len(self.label) == len(self.x))
        self.feature_names = list(feature_names)
        assert len(self.feature_names) == self.x.shape[1], "ValueError: feature_names must be unique and of the data's width"
        assert all(isinstance(n, str) and not set(n) & set("[]<") for n in self.feature_names)


class Booster:
    def __init__(self, params, rounds, names, fitted):
        self._params, self._rounds, self._fitted, self.feature_names = params, rounds, fitted, names

    def predict(self, data, *, output_margin=False, pred_leaf=False, iteration_range=(0, 0)):  # pylint: disable=unused-argument
        assert isinstance(data, DMatrix)
        if data.feature_names != self.feature_names:
            raise ValueError("feature_names mismatch")
        if self._params["booster"] == "gbtree":
            likely = numpy.clip(self._fitted.predict_proba(data.x)[:, 1], 1e-6, 1 - 1e-6)
            margin = numpy.log(likely / (1 - likely))
        else:
            likely = margin = self._fitted.decision_function(data.x)
        return (margin if output_margin else likely).astype(numpy.float32)

    def num_boosted_rounds(self):
        return self._rounds

    def get_score(self, fmap="", importance_type="weight"):
        assert fmap == ""
        if self._params["booster"] == "gblinear":
            assert importance_type == "weight", "gblinear only has `weight` defined for feature importance."
            return {n: float(v) for n, v in zip(self.feature_names, self._fitted.coef_[0])}
        assert importance_type in ("weight", "gain", "cover", "total_gain", "total_cover")
        return {n: float(v) for n, v in zip(self.feature_names, self._fitted.feature_importances_) if v > 0}

    def save_config(self):
        """Numbers as texts, in single precision, in the sections that the real one has."""
        known, own = (TREE, "tree_train_param") if self._params["booster"] == "gbtree" else (LINEAR, "linear_train_param")
        values = {k: str(numpy.float32(self._params.get(k, v)) if isinstance(self._params.get(k, v), float) else self._params.get(k, v))
                  for k, v in known.items()}
        booster = {"name": self._params["booster"], own: values}
        if own == "tree_train_param":
            booster["gbtree_model_param"] = {"num_parallel_tree": str(self._params.get("num_parallel_tree", 1))}
            booster["gbtree_train_param"] = {"tree_method": self._params.get("tree_method", "auto")}
        return json.dumps({"learner": {"generic_param": {"nthread": str(self._params["nthread"]), "seed": str(self._params["seed"])},
                                       "gradient_booster": booster, "objective": {"name": self._params["objective"]}},
                           "version": [2, 0, 3]})


def train(params, dtrain, num_boost_round=10, *, evals=None, obj=None, maximize=None, early_stopping_rounds=None,
          evals_result=None, verbose_eval=True, xgb_model=None, callbacks=None):  # pylint: disable=unused-argument
    assert isinstance(params, dict) and isinstance(dtrain, DMatrix) and isinstance(num_boost_round, int)
    tree = params["booster"] == "gbtree"
    allowed = {*LEARNER, *(TREE if tree else LINEAR), *(("num_parallel_tree", "tree_method") if tree else ("updater",))}
    assert set(params) <= allowed, f'Parameters: {set(params) - allowed} might not be used.'
    assert params["booster"] in ("gbtree", "gblinear") and params["objective"] in ("binary:logistic", "binary:hinge")
    if tree:
        model = sklearn.ensemble.RandomForestClassifier(n_estimators=params["num_parallel_tree"], random_state=params["seed"],
                                                        max_depth=params.get("max_depth", 6) or None)
    elif params["objective"] == "binary:logistic":
        model = sklearn.linear_model.LogisticRegression()
    else:
        model = sklearn.svm.LinearSVC(random_state=0)
    return Booster(dict(params), num_boost_round, dtrain.feature_names, model.fit(dtrain.x, dtrain.label))
