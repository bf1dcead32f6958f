"""The four classifiers; underneath are those of scikit-learn."""

import numpy
import sklearn.ensemble
import sklearn.linear_model
import sklearn.neural_network
import sklearn.svm

from pyspark.ml import Params, to_bool, to_float, to_int, to_ints, to_string
from pyspark.ml.linalg import DenseMatrix, DenseVector

COMMON = {"featuresCol": (to_string, "features"), "labelCol": (to_string, "label"),
          "predictionCol": (to_string, "prediction"), "rawPredictionCol": (to_string, "rawPrediction"),
          "weightCol": (to_string, None)}
PROBABILITY = {"probabilityCol": (to_string, "probability")}
LINEAR = {"maxIter": (to_int, 100), "regParam": (to_float, 0.0), "tol": (to_float, 1e-6), "fitIntercept": (to_bool, True),
          "standardization": (to_bool, True), "aggregationDepth": (to_int, 2), "maxBlockSizeInMB": (to_float, 0.0)}


class Model:
    """A fitted model: transform() adds the columns that its kind has."""

    def __init__(self, estimator, fitted):
        self._estimator, self._fitted = estimator, fitted

    def getOrDefault(self, param):
        return self._estimator.getOrDefault(param)

    def transform(self, dataset):
        names = self._estimator
        x = numpy.array([v.toArray() for v in dataset.column(names.getOrDefault("featuresCol"))])
        assert x.shape[1] == self._fitted.n_features_in_, "IllegalArgumentException: another number of features"
        columns = {}
        if "probabilityCol" in names.PARAMS:
            likely = self._fitted.predict_proba(x)
            columns["rawPrediction"] = columns["probability"] = [DenseVector(row) for row in likely]
            columns["prediction"] = [float(row[1] > row[0]) for row in likely]
        else:
            margin = self._fitted.decision_function(x)
            columns["rawPrediction"] = [DenseVector([-m, m]) for m in margin]
            columns["prediction"] = [float(m > 0) for m in margin]
        return dataset.with_values(**columns)


class Estimator(Params):
    MODEL = Model

    def __init__(self, *arguments, **given):
        assert not arguments, "TypeError: Method __init__ forces keyword arguments."
        super().__init__(**given)

    def fit(self, dataset, params=None):
        assert params is None or isinstance(params, dict), params
        x = dataset.column(self.getOrDefault("featuresCol"))
        y = dataset.column(self.getOrDefault("labelCol"))
        assert all(isinstance(v, DenseVector) for v in x) and all(isinstance(v, float) for v in y)
        return self.MODEL(self, self.native().fit(numpy.array([v.toArray() for v in x]), numpy.array(y)))

    def native(self):
        raise NotImplementedError


class ForestModel(Model):
    @property
    def treeWeights(self):
        return [1.0] * len(self._fitted.estimators_)

    @property
    def featureImportances(self):
        return DenseVector(self._fitted.feature_importances_)


class LinearModel(Model):
    @property
    def coefficients(self):
        return DenseVector(self._fitted.coef_[0])


class Py4JJavaError(Exception):
    """What an exception of Java becomes. It is no AttributeError."""


class LogisticModel(Model):
    """With the family multinomial, a row for each label also where there are two."""

    @property
    def _multinomial(self):
        return self.getOrDefault("family") == "multinomial"

    def _vector(self, value, plural, instead):
        if self._multinomial:
            raise Py4JJavaError("An error occurred: org.apache.spark.SparkException: Multinomial models contain a "
                                f"{plural}, use {instead} instead.")
        return value

    @property
    def coefficients(self):
        return self._vector(DenseVector(self._fitted.coef_[0]), "matrix of coefficients", "coefficientMatrix")

    @property
    def intercept(self):
        return self._vector(float(self._fitted.intercept_[0]), "vector of intercepts", "interceptVector")

    @property
    def coefficientMatrix(self):
        row = self._fitted.coef_[0]
        return DenseMatrix([-row / 2, row / 2] if self._multinomial else [row])

    @property
    def interceptVector(self):
        value = float(self._fitted.intercept_[0])
        return DenseVector([-value / 2, value / 2] if self._multinomial else [value])


class NetworkModel(Model):
    def getLayers(self):
        return self._estimator.getOrDefault("layers")


class RandomForestClassifier(Estimator):
    PARAMS = {**COMMON, **PROBABILITY, "maxDepth": (to_int, 5), "maxBins": (to_int, 32), "minInstancesPerNode": (to_int, 1),
              "minInfoGain": (to_float, 0.0), "maxMemoryInMB": (to_int, 256), "cacheNodeIds": (to_bool, False),
              "checkpointInterval": (to_int, 10), "impurity": (to_string, "gini"), "numTrees": (to_int, 20),
              "featureSubsetStrategy": (to_string, "auto"), "seed": (to_int, None), "subsamplingRate": (to_float, 1.0),
              "leafCol": (to_string, ""), "minWeightFractionPerNode": (to_float, 0.0), "bootstrap": (to_bool, True)}
    MODEL = ForestModel

    def native(self):
        get = self.getOrDefault
        assert 0 <= get("maxDepth") <= 30 and get("impurity") in ("gini", "entropy") and get("numTrees") >= 1
        return sklearn.ensemble.RandomForestClassifier(
            n_estimators=get("numTrees"), max_depth=get("maxDepth") or 1, criterion=get("impurity"), bootstrap=get("bootstrap"),
            min_samples_leaf=get("minInstancesPerNode"), min_impurity_decrease=get("minInfoGain"), random_state=get("seed"))


class LogisticRegression(Estimator):
    PARAMS = {**COMMON, **PROBABILITY, **LINEAR, "elasticNetParam": (to_float, 0.0), "threshold": (to_float, 0.5),
              "family": (to_string, "auto")}
    MODEL = LogisticModel

    def native(self):
        assert self.getOrDefault("family") in ("auto", "binomial", "multinomial"), "IllegalArgumentException: family"
        assert 0 <= self.getOrDefault("elasticNetParam") <= 1
        return sklearn.linear_model.LogisticRegression(C=1 / (self.getOrDefault("regParam") * 1000 + 1e-3),
                                                       fit_intercept=self.getOrDefault("fitIntercept"))


class LinearSVC(Estimator):
    PARAMS = {**COMMON, **LINEAR, "threshold": (to_float, 0.0)}
    MODEL = LinearModel

    def native(self):
        return sklearn.svm.LinearSVC(C=1 / (self.getOrDefault("regParam") * 1000 + 1), random_state=0, max_iter=10000)


class MultilayerPerceptronClassifier(Estimator):
    PARAMS = {**COMMON, **PROBABILITY, "maxIter": (to_int, 100), "tol": (to_float, 1e-6), "seed": (to_int, None),
              "layers": (to_ints, None), "blockSize": (to_int, 128), "stepSize": (to_float, 0.03),
              "solver": (to_string, "l-bfgs")}
    MODEL = NetworkModel

    def fit(self, dataset, params=None):
        layers = self.getOrDefault("layers")
        assert layers and len(layers) > 1 and layers[-1] == 2, "IllegalArgumentException: layers"
        assert layers[0] == len(dataset.column(self.getOrDefault("featuresCol"))[0]), "the first layer is not the data's width"
        assert self.getOrDefault("solver") in ("l-bfgs", "gd")
        return super().fit(dataset, params)

    def native(self):
        return sklearn.neural_network.MLPClassifier(
            hidden_layer_sizes=self.getOrDefault("layers")[1:-1], max_iter=self.getOrDefault("maxIter"), solver="lbfgs",
            random_state=self.getOrDefault("seed"))
