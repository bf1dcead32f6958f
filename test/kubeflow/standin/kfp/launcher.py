"""Runs a task as Kubeflow Pipelines' driver and launcher would: arguments from the task and the defaults, placeholders replaced, output
folders made, and what the program says about its outputs taken over."""

import json
import os
import subprocess

from . import dsl

EXECUTOR_OUTPUT = {"parameterValues", "artifacts"}
ARTIFACT = {"name", "type", "uri", "metadata"}


def _text(value):
    """A parameter in a command line: numbers without an exponent, lists and objects as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else json.dumps(value)


def parameters(task, pipeline_inputs):
    """The value of every input: the task's, the pipeline's, or the default."""
    values = {}
    for name, spec in task.component.inputs.items():
        value = task.arguments.get(name, spec.default)
        values[name] = pipeline_inputs[value.name] if isinstance(value, dsl.Channel) else value
    return values


def launch(task, pipeline_inputs, folder, programs, env=None, timeout=300):
    """Exit status, output, and for each output artifact its path and metadata. PROGRAMS replaces the first word."""
    values = parameters(task, pipeline_inputs)
    artifacts = {n: {"name": n, "type": {"schemaTitle": kind, "schemaVersion": "0.0.1"}, "uri": f"minio://pipelines/{n}", "metadata": {}}
                 for n, kind in task.component.outputs.items()}
    paths = {n: os.path.join(folder, "minio", "pipelines", n) for n in artifacts}
    output_file = os.path.join(folder, "outputs", "executor_output.json")
    executor_input = {"inputs": {"parameterValues": values}, "outputs": {
        "artifacts": {n: {"artifacts": [a]} for n, a in artifacts.items()}, "outputFile": output_file}}
    for path in [*paths.values(), output_file]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    words = {"{{$}}": json.dumps(executor_input)}
    words.update({f"{{{{$.inputs.parameters['{n}']}}}}": _text(v) for n, v in values.items()})
    words.update({f"{{{{$.outputs.artifacts['{n}'].path}}}}": p for n, p in paths.items()})
    argv = [words.get(w, w) for w in task.component.words]
    assert not [w for w in argv if "{{$" in w], argv
    done = subprocess.run([programs.get(argv[0], argv[0]), *argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False, env={**os.environ, **(env or {})})
    if os.path.exists(output_file):
        _merge(output_file, artifacts)
    return done.returncode, done.stdout, {n: (paths[n], artifacts[n]["metadata"]) for n in artifacts}


def _merge(output_file, artifacts):
    with open(output_file, encoding="utf-8") as f:
        said = json.load(f)
    assert set(said) <= EXECUTOR_OUTPUT, said
    for name, entry in said.get("artifacts", {}).items():
        assert set(entry) == {"artifacts"} and set(entry["artifacts"][0]) <= ARTIFACT, entry
        assert entry["artifacts"][0]["uri"] == artifacts[name]["uri"], "the artifact is another one"
        artifacts[name]["metadata"].update(entry["artifacts"][0].get("metadata", {}))
