"""A machine-learning pipeline that profiles before it trains, for Kubeflow Pipelines v2.

    pip install kfp
    python3 examples/kubeflow/pipeline.py ml-pipeline-with-profiling.yaml

writes what `kfp run create -f` or Kubeflow's page takes. The account of its steps (pipeline-runner, or default-editor of a
profile's namespace) needs a role: docs/kubeflow.md has it.
"""

import os
import sys

from kfp import compiler, components, dsl

HERE = os.path.dirname(os.path.abspath(__file__))
sonde = components.load_component_from_file(os.path.join(HERE, "..", "..", "python", "component.yaml"))


@dsl.component(base_image="python:3.11-slim")
def preprocess(rows: int) -> int:
    """Stands for what gets the data ready; says how many rows there are."""
    return rows


@dsl.component(base_image="python:3.11-slim")
def train_model(profiling_results: dsl.Input[dsl.Artifact]) -> str:
    """Trains on the features that profiling has kept; here it says which those are."""
    import json

    with open(profiling_results.path, encoding="utf-8") as f:
        results = json.load(f)
    return ", ".join(results.get("mlResults", {}).get("selectedFeatures", []))


@dsl.pipeline(name="ML Pipeline with Profiling", description="ML pipeline that includes algorithm profiling")
def ml_pipeline_with_profiling(name: str = "feature-selection-profiling", namespace: str = "default"):
    data = preprocess(rows=50000)

    # What these three do is outside of the pipeline: a step that was done before must be done again, not taken from the cache.
    profile = sonde(action="profile", name=name, namespace=namespace, algorithm_name="feature_selection", algorithm_type="ml",
                    input_size=50000, framework="dask", task="feature_selection", dataset_size=50000, n_features=200, n_select=50)
    profile.set_display_name("profile-feature-selection").set_caching_options(False).after(data)

    wait = sonde(action="wait", name=name, namespace=namespace, resource_type="AlgorithmProfiling", wait_timeout=3600)
    wait.set_display_name("wait-for-profiling").set_caching_options(False).after(profile)

    get_results = sonde(action="get-results", name=name, namespace=namespace, resource_type="AlgorithmProfiling",
                        output_file="/tmp/profiling_results.json")
    get_results.set_display_name("get-profiling-results").set_caching_options(False).after(wait)

    train_model(profiling_results=get_results.outputs["results"])


if __name__ == "__main__":
    compiler.Compiler().compile(pipeline_func=ml_pipeline_with_profiling, package_path=sys.argv[1])
