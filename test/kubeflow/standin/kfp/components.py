"""kfp.components: components of YAML, in the form that has an `implementation`."""

import re

import yaml

from . import dsl

MEMBERS = {
    "component": {"name", "description", "metadata", "inputs", "outputs", "implementation"},
    "input": {"name", "type", "description", "default", "optional", "annotations"},
    "output": {"name", "type", "description", "annotations"},
    "container": {"image", "command", "args", "env"},
}


def _check(what, kind, needed=()):
    assert isinstance(what, dict), what
    unknown = set(what) - MEMBERS[kind]
    if unknown:
        raise TypeError(f"{kind} has unknown members: {unknown}")
    for name in needed:
        if not isinstance(what.get(name), str) or not what[name]:
            raise TypeError(f"{kind} needs {name}: {what}")


def _kind(entry):
    word = entry["type"].lower()
    if word in dsl.PARAMETERS:
        return dsl.PARAMETERS[word]
    if word not in dsl.ARTIFACTS:
        raise TypeError(f"{entry['name']}: {entry['type']} would silently be system.Artifact")
    return dsl.ARTIFACTS[word]


class YamlComponent(dsl.Component):
    def __init__(self, text):
        documents = list(yaml.safe_load_all(text))
        assert len(documents) == 1, "one document is wanted"
        spec = documents[0]
        _check(spec, "component", ("name",))
        inputs, outputs = {}, {}
        for entry in spec.get("inputs", []):
            _check(entry, "input", ("name", "type"))
            self._add(inputs, entry, self._input(entry))
        for entry in spec.get("outputs", []):
            _check(entry, "output", ("name", "type"))
            self._add(outputs, entry, _kind(entry))
        super().__init__(spec["name"], inputs, outputs)
        assert set(spec["implementation"]) == {"container"}, spec["implementation"]
        self.container = spec["implementation"]["container"]
        _check(self.container, "container", ("image",))
        assert self.container.get("command"), "the launcher cannot see an image's entrypoint"
        self.words = [self._word(w) for w in self.container["command"] + self.container.get("args", [])]

    @staticmethod
    def _add(to, entry, value):
        name = entry["name"]
        assert name == re.sub("[^_0-9a-z]+", "_", name.lower()).strip("_"), f"{name} would be called otherwise in Python"
        if name in to:
            raise ValueError(f'Non-unique name "{name}"')
        to[name] = value

    @staticmethod
    def _input(entry):
        kind, has = _kind(entry), "default" in entry
        if has and not isinstance(entry["default"], str):
            raise TypeError(f"{entry['name']}: the default is text, whatever the type")
        return dsl.InputSpec(kind, has or entry.get("optional", False), dsl.cast(kind, entry["default"]) if has else None)

    def _word(self, word):
        """A placeholder as text, as it is written into a pipeline."""
        if isinstance(word, str):
            return word
        (what, name), = word.items()
        if what == "inputValue":
            if not self.inputs[name].kind in dsl.PARAMETERS.values():
                raise TypeError(f"the artifact {name} cannot be paired with inputValue")
            return f"{{{{$.inputs.parameters['{name}']}}}}"
        if what == "outputPath":
            if self.outputs[name] in dsl.PARAMETERS.values():
                return f"{{{{$.outputs.parameters['{name}'].output_file}}}}"
            return f"{{{{$.outputs.artifacts['{name}'].path}}}}"
        raise TypeError(f"Unexpected argument {word}")


def load_component_from_text(text):
    return YamlComponent(text)


def load_component_from_file(file_path):
    with open(file_path, encoding="utf-8") as f:
        return load_component_from_text(f.read())
