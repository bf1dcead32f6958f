"""MulticlassClassificationEvaluator."""

import math

from pyspark.ml import Params, to_float, to_string

METRICS = ("f1", "accuracy", "weightedPrecision", "weightedRecall", "weightedTruePositiveRate", "weightedFalsePositiveRate",
           "weightedFMeasure", "truePositiveRateByLabel", "falsePositiveRateByLabel", "precisionByLabel", "recallByLabel",
           "fMeasureByLabel", "logLoss", "hammingLoss")


class MulticlassClassificationEvaluator(Params):
    PARAMS = {"predictionCol": (to_string, "prediction"), "labelCol": (to_string, "label"), "metricName": (to_string, "f1"),
              "probabilityCol": (to_string, "probability"), "eps": (to_float, 1e-15)}

    def evaluate(self, dataset):
        metric = self.getOrDefault("metricName")
        assert metric in METRICS, f"IllegalArgumentException: {metric}"
        labels = dataset.column(self.getOrDefault("labelCol"))
        if metric == "logLoss":
            likely = dataset.column(self.getOrDefault("probabilityCol"))
            return sum(-math.log(max(p[int(y)], 1e-15)) for p, y in zip(likely, labels)) / len(labels)
        assert metric == "accuracy"
        return sum(p == y for p, y in zip(dataset.column(self.getOrDefault("predictionCol")), labels)) / len(labels)
