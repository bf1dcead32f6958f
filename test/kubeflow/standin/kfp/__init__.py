"""A stand-in for Kubeflow Pipelines' SDK, version 2: what python/component.yaml and examples/kubeflow/pipeline.py need of it.

It has the interface of the real one, its signatures included, and refuses what that refuses: unknown members of a component, types and
placeholders that do not fit, arguments that are missing, unknown or of another type. Instead of a pipeline's YAML it keeps the tasks,
which kfp.launcher runs as the launcher in a step's pod would.
"""

from . import compiler, components, dsl  # noqa: F401
