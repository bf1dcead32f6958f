#!/usr/bin/python3
"""The adapters of Spark and Ray against stand-ins that check every call (test/ml/standins/)."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "standins"))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
os.environ["PYTHONPATH"] = os.path.join(HERE, "standins")
import ml_runs
from ml_runs import check, common, pod, reach_the_model, requests, run
from sonde_test import main

LINEAR = {"maxIter": 50, "regParam": 0.01, "tol": 0.001, "fitIntercept": False, "standardization": False, "aggregationDepth": 3}
SAMPLES = {
    "spark": {
        "random_forest": [{"numTrees": 7, "maxDepth": 4, "maxBins": 16, "minInstancesPerNode": 3, "minInfoGain": 0.001,
                           "impurity": "entropy", "subsamplingRate": 0.5, "featureSubsetStrategy": "sqrt", "bootstrap": False}],
        "logistic_regression": [{**LINEAR, "elasticNetParam": 0.5, "family": "binomial"}, {"family": "multinomial"}],
        "svm": [LINEAR],
        "neural_network": [{"hiddenLayers": [7, 5], "maxIter": 30, "tol": 0.001, "blockSize": 64, "stepSize": 0.1, "solver": "gd"}]},
    "ray": {"random_forest": [{"n_estimators": 7, "max_depth": 3}]},
}
NO_IMPORTANCES = {"spark": ("neural_network",)}  # no way to select by them


def every_task_is_done(framework):
    done = 0
    for request in requests(framework):
        method = request.get("parameters", {}).get("method")
        if request["algorithm"] in NO_IMPORTANCES.get(framework, ()) and method in ("wrapper", "embedded"):
            try:
                run(framework, **request)
                raise AssertionError(f"{request} was not refused")
            except common.Refused as e:
                assert e.reason == "Unsupported" and "use the method filter" in str(e), e
            continue
        check(request, run(framework, **request))
        done += 1
    assert done >= 10, done


def spark_does_every_task():
    every_task_is_done("spark")


def ray_does_every_task():
    """ray does every task, in a worker that has nothing but what it was sent"""
    every_task_is_done("ray")


def every_parameter_reaches_the_model():
    reach_the_model("spark", SAMPLES["spark"])
    found = run("ray", parameters={"n_estimators": 7, "max_depth": 3, "num_cpus": 5})["ml"]["parameters"]
    assert (found["n_estimators"], found["max_depth"], found["num_cpus"]) == (7, 3, 5), found


def the_same_seed_gives_the_same_model():
    for request in list(requests("spark"))[::3]:
        if request["algorithm"] in NO_IMPORTANCES["spark"] and "method" in request["parameters"]:
            continue
        one, two = (ml_runs.timeless(run("spark", rows=120, **request)) for _ in range(2))
        assert one == two, request


def spark_has_importances_of_every_family():
    found = []
    for family in ("auto", "binomial", "multinomial"):
        for task in ("train", "feature_selection"):
            more = {"method": "embedded", "n_select": 4} if task == "feature_selection" else {}
            found.append(run("spark", task=task, algorithm="logistic_regression", parameters={"family": family, **more})["ml"])
    for ml in found:
        assert ml["featureImportances"] == found[ml["task"] == "feature_selection"]["featureImportances"], ml
        assert len(ml["featureImportances"]) == len(ml.get("selectedFeatures", range(ml_runs.FEATURES))), ml


def spark_caches_one_fold_at_a_time():
    from pyspark.sql import SparkSession  # pylint: disable=import-outside-toplevel,import-error
    SparkSession.most_cached = 0
    run("spark", task="hyperparameter_tuning", algorithm="svm", parameters={"regParam": [0.1, 0.2], "cv": 6})
    assert SparkSession.most_cached == 4, SparkSession.most_cached  # what is trained on, what is held out, and one fold


def clusters_are_named_by_parameters_and_by_the_environment():
    found = run("spark", parameters={"master": "spark://spark-master:7077"})
    assert found["ml"]["parameters"]["master"] == "spark://spark-master:7077" and set(found["region"]) == {"wall"}, found
    assert run("spark", parameters={"numTrees": 3})["ml"]["parameters"]["master"].startswith("local[")
    found = run("ray", parameters={"address": "ray://ray-head:10001", "n_estimators": 4})
    assert found["ml"]["parameters"]["address"] == "ray://ray-head:10001" and set(found["region"]) == {"wall"}, found
    os.environ["RAY_ADDRESS"], os.environ["SPARK_MASTER"] = "ray://ray-head:10001", "spark://spark-master:7077"
    try:
        assert run("ray", parameters={"n_estimators": 4})["ml"]["parameters"]["address"] == "ray://ray-head:10001"
        assert run("spark")["ml"]["parameters"]["master"] == "spark://spark-master:7077"
    finally:
        del os.environ["RAY_ADDRESS"], os.environ["SPARK_MASTER"]
    try:
        run("ray", parameters={"address": "ray://nowhere:10001"})
        raise AssertionError("there is nobody")
    except common.Refused as e:
        assert e.reason == "FrameworkUnavailable" and "ray://nowhere:10001" in str(e), e


def spark_without_java_is_not_there():
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = "/nowhere"
    try:
        run("spark")
        raise AssertionError("it has no Java")
    except common.Refused as e:
        assert e.reason == "FrameworkUnavailable" and "Java runtime" in str(e) and "--ml-image" in str(e), e
    finally:
        del os.environ["JAVA_HOME"]
        if before is not None:
            os.environ["JAVA_HOME"] = before


def a_session_ends_after_a_failure_too():
    import ray  # pylint: disable=import-outside-toplevel,import-error
    try:
        run("ray", algorithm="logistic_regression", parameters={"penalty": "l1", "solver": "lbfgs"})
        raise AssertionError("it was not refused")
    except (common.Refused, RuntimeError):
        assert not ray.is_initialized()


def sonde_pod_runs_them_too():
    status, metrics, said = pod({"framework": "spark", "parameters": {"algorithm": "random_forest", "numTrees": 100}},
                                SONDE_INPUT_SIZE="500")
    assert status == 0 and metrics["ml"]["parameters"]["numTrees"] == 100, said
    status, metrics, said = pod({"framework": "ray", "task": "distributed_training", "datasetSize": 500, "nFeatures": 150,
                                 "algorithm": "random_forest"})
    assert status == 0 and metrics["ml"]["parameters"]["n_estimators"] == 100, said


main(spark_does_every_task, ray_does_every_task,
     every_parameter_reaches_the_model, the_same_seed_gives_the_same_model, spark_has_importances_of_every_family, spark_caches_one_fold_at_a_time,
     clusters_are_named_by_parameters_and_by_the_environment, spark_without_java_is_not_there,
     a_session_ends_after_a_failure_too, sonde_pod_runs_them_too)
