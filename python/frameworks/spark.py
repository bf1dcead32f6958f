"""Spark: its own estimators (pyspark.ml) on its own data frames, in this pod or on a cluster."""

import importlib
import os

from .common import Adapter, Data, cpus, number, part_seed, sizes, text, truth, unavailable, whole, word

PARTITIONS = 4  # the same wherever it runs: what is sampled depends on it
LINEAR = {"maxIter": whole(0), "regParam": number(0), "tol": number(0), "fitIntercept": truth(),
          "standardization": truth(), "aggregationDepth": whole(2)}
NATIVE = {"random_forest": "RandomForestClassifier", "logistic_regression": "LogisticRegression", "svm": "LinearSVC",
          "neural_network": "MultilayerPerceptronClassifier"}
SEEDED = ("random_forest", "neural_network")


class Spark(Adapter):
    NAME = "spark"
    MODULES = ("pyspark.sql", "pyspark.ml.classification", "pyspark.ml.evaluation", "pyspark.ml.feature", "pyspark.ml.linalg")
    NEEDS = "the packages pyspark (3.1 or newer) and numpy, and a Java runtime"
    OPTIONS = {"master": text()}
    ALGORITHMS = {
        "random_forest": {
            "numTrees": whole(1, 100000), "maxDepth": whole(0, 30), "maxBins": whole(2), "minInstancesPerNode": whole(1),
            "minInfoGain": number(0), "impurity": word("gini", "entropy"), "subsamplingRate": number(0, 1, above=True),
            "featureSubsetStrategy": text(), "bootstrap": truth()},
        "logistic_regression": {**LINEAR, "elasticNetParam": number(0, 1), "family": word("auto", "binomial", "multinomial")},
        "svm": dict(LINEAR),
        "neural_network": {"hiddenLayers": sizes(), "maxIter": whole(0), "tol": number(0), "blockSize": whole(1),
                           "stepSize": number(0, above=True), "solver": word("l-bfgs", "gd")},
    }
    GRIDS = {
        "random_forest": {"numTrees": [20, 50], "maxDepth": [5, 10]},
        "logistic_regression": {"regParam": [0.0, 0.01, 0.1], "elasticNetParam": [0.0, 0.5]},
        "svm": {"regParam": [0.0, 0.01, 0.1]},
        "neural_network": {"hiddenLayers": [[20], [50], [50, 20]]},
    }

    def __init__(self):
        self._session = self._partitions = None

    def start(self, job, scratch):
        self._partitions = job.settings.get("n_partitions", PARTITIONS)
        master = job.options.get("master") or os.environ.get("SPARK_MASTER") or f"local[{cpus()}]"
        builder = (importlib.import_module("pyspark.sql").SparkSession.builder.appName("sonde").master(master)
                   .config("spark.ui.enabled", "false").config("spark.local.dir", scratch)
                   .config("spark.default.parallelism", str(self._partitions))
                   .config("spark.sql.shuffle.partitions", str(self._partitions)))
        try:
            self._session = builder.getOrCreate()
        except RuntimeError as e:
            if "gateway" not in str(e).lower():
                raise
            raise unavailable(f"Spark found no Java runtime that works ({e}): it needs {self.NEEDS}; name an image that has them "
                              "with the operator's --ml-image") from e

    def stop(self):
        if self._session is not None:
            self._session.stop()

    def elsewhere(self):
        return not self._session.sparkContext.master.startswith("local")

    def options_of(self):
        return {"master": self._session.sparkContext.master}

    def prepare(self, data):
        vectors = importlib.import_module("pyspark.ml.linalg").Vectors
        rows = [(vectors.dense(x), y) for x, y in zip(data.x, data.y.astype(float).tolist())]  # the vectors are views of x
        data.native = self._session.createDataFrame(rows, ["features", "label"]).cache()
        data.native.count()  # it is made now, and not when it is first used
        return data

    def release(self, pairs):
        for data in (data for pair in pairs for data in pair):
            data.native.unpersist()  # else it is cached as long as the session lives

    def columns(self, data, index):
        slicer = importlib.import_module("pyspark.ml.feature").VectorSlicer(
            inputCol="features", outputCol="kept", indices=[int(i) for i in index])
        kept = slicer.transform(data.native).select("kept", "label").withColumnRenamed("kept", "features")
        return Data(None, data.y, [data.names[i] for i in index], kept)

    def fit(self, algorithm, parameters, data, seed):
        given = dict(parameters)
        if algorithm in SEEDED:
            given["seed"] = seed
        if algorithm == "neural_network":  # the data decide the first layer and the last
            given["layers"] = [len(data.names), *given.pop("hiddenLayers", [50]), 2]
        estimator = getattr(importlib.import_module("pyspark.ml.classification"), NATIVE[algorithm])
        return estimator(featuresCol="features", labelCol="label", **given).fit(data.native)

    def parameters_of(self, algorithm, model):
        found = {name: model.getOrDefault(name) for name in self.ALGORITHMS[algorithm] if name != "hiddenLayers"}
        if algorithm == "random_forest":
            found["numTrees"] = len(model.treeWeights)
        if algorithm == "neural_network":
            found["hiddenLayers"] = list(model.getLayers())[1:-1]
        return found

    def _evaluate(self, metric, frame):
        return importlib.import_module("pyspark.ml.evaluation").MulticlassClassificationEvaluator(
            labelCol="label", predictionCol="prediction", metricName=metric).evaluate(frame)

    def accuracy(self, model, data):
        return self._evaluate("accuracy", model.transform(data.native))

    def loss(self, model, data):
        frame = model.transform(data.native)
        if "probability" in frame.columns:
            return "log", self._evaluate("logLoss", frame)
        rows = frame.select("label", "rawPrediction").collect()
        return "hinge", sum(max(0.0, 1 - (2 * row["label"] - 1) * float(row["rawPrediction"][1])) for row in rows) / len(rows)

    def importances(self, model):
        kind = type(model)  # whether a model has them is a question to its class: asked itself, Spark may answer with any error
        if hasattr(kind, "featureImportances"):
            return model.featureImportances.toArray()
        if hasattr(kind, "coefficientMatrix"):  # of logistic regression: one row, of the family multinomial one for each label
            return abs(model.coefficientMatrix.toArray()).sum(0)
        return abs(model.coefficients.toArray()) if hasattr(kind, "coefficients") else None

    def choose(self, job, data, count):
        selector = importlib.import_module("pyspark.ml.feature").UnivariateFeatureSelector(
            featuresCol="features", labelCol="label", outputCol="kept", selectionMode="numTopFeatures")
        selector.setFeatureType("continuous").setLabelType("categorical").setSelectionThreshold(count)
        return sorted(int(i) for i in selector.fit(data.native).selectedFeatures)

    def distribute(self, job, data):
        return self.fit(job.algorithm, job.parameters, data, part_seed(job.seed))  # all of Spark's training is distributed


ADAPTER = Spark
