"""VectorSlicer and UnivariateFeatureSelector."""

import numpy
import sklearn.feature_selection

from pyspark.ml import Params, to_float, to_ints, to_string
from pyspark.ml.linalg import DenseVector


class VectorSlicer(Params):
    PARAMS = {"inputCol": (to_string, None), "outputCol": (to_string, None), "indices": (to_ints, []), "names": (list, [])}

    def transform(self, dataset):
        indices = self.getOrDefault("indices")
        assert indices and len(set(indices)) == len(indices), "IllegalArgumentException: indices"
        values = [DenseVector(v.toArray()[indices]) for v in dataset.column(self.getOrDefault("inputCol"))]
        return dataset.with_values(**{self.getOrDefault("outputCol"): values})


class SelectorModel:
    def __init__(self, selected):
        self.selectedFeatures = selected


class UnivariateFeatureSelector(Params):
    PARAMS = {"featuresCol": (to_string, "features"), "outputCol": (to_string, None), "labelCol": (to_string, "label"),
              "selectionMode": (to_string, "numTopFeatures")}

    def __init__(self, **given):
        super().__init__(**given)
        self._types, self._threshold = {}, None

    def setFeatureType(self, value):
        assert value in ("categorical", "continuous")
        self._types["feature"] = value
        return self

    def setLabelType(self, value):
        assert value in ("categorical", "continuous")
        self._types["label"] = value
        return self

    def setSelectionThreshold(self, value):
        self._threshold = to_float(value)
        return self

    def fit(self, dataset):
        assert self._types == {"feature": "continuous", "label": "categorical"}, "NoSuchElementException: set both types"
        assert self.getOrDefault("selectionMode") == "numTopFeatures" and self._threshold >= 1
        x = numpy.array([v.toArray() for v in dataset.column(self.getOrDefault("featuresCol"))])
        y = numpy.array(dataset.column(self.getOrDefault("labelCol")))
        scores = sklearn.feature_selection.f_classif(x, y)[0]
        return SelectorModel([int(i) for i in numpy.argsort(-scores)[:int(self._threshold)]])
