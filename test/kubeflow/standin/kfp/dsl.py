"""kfp.dsl: components of Python functions, pipelines, tasks."""

import functools
import inspect
import json
import re

PARAMETERS = {"string": "String", "str": "String", "text": "String", "integer": "Integer", "int": "Integer", "double": "Float",
              "float": "Float", "bool": "Boolean", "boolean": "Boolean", "list": "List", "jsonarray": "List", "dict": "Dict",
              "jsonobject": "Dict"}
ARTIFACTS = {"artifact": "system.Artifact", "model": "system.Model", "dataset": "system.Dataset", "metrics": "system.Metrics",
             "classificationmetrics": "system.ClassificationMetrics", "html": "system.HTML", "markdown": "system.Markdown"}
OF_VALUES = {str: "String", int: "Integer", float: "Float", bool: "Boolean", list: "List", dict: "Dict"}


class Artifact:
    def __init__(self, path):
        self.path = path


class Metrics(Artifact):
    pass


class _Marker:
    def __init__(self, kind):
        self.kind = kind


class Input:
    def __class_getitem__(cls, kind):
        return _Marker("system." + kind.__name__)


class Output(Input):
    pass


class Channel:
    """What a task or a pipeline gives; its type is a parameter's or an artifact's."""

    def __init__(self, name, kind, task=None):
        self.name, self.kind, self.task = name, kind, task


class InputSpec:
    def __init__(self, kind, optional=False, default=None):
        self.kind, self.optional, self.default = kind, optional, default


class Component:
    def __init__(self, name, inputs, outputs):
        self.name, self.inputs, self.outputs = re.sub("[^-0-9a-z]+", "-", name.lower()).strip("-"), inputs, outputs

    def __call__(self, *args, **kwargs):
        if args:
            raise TypeError("Components must be instantiated using keyword arguments.")
        for name, value in kwargs.items():
            if name not in self.inputs:
                raise TypeError(f'{self.name}() got an unexpected keyword argument "{name}".')
            given = value.kind if isinstance(value, Channel) else OF_VALUES[type(value)]
            wanted = self.inputs[name].kind
            if given != wanted and "system.Artifact" not in (given, wanted):
                raise TypeError(f"{self.name}(): {name} is a {given}, and a {wanted} is wanted")
        missing = [n for n, i in self.inputs.items() if not i.optional and n not in kwargs]
        if missing:
            raise TypeError(f"{self.name}() missing required arguments: {missing}")
        return PipelineTask(self, kwargs)


class PipelineTask:
    def __init__(self, component, arguments):
        self.component, self.arguments = component, arguments
        self.display_name, self.caching, self.upstream = None, True, []
        self._outputs = {name: Channel(name, kind, self) for name, kind in component.outputs.items()}
        _Pipeline.current.tasks.append(self)

    @property
    def outputs(self):
        return self._outputs

    @property
    def output(self):
        if len(self._outputs) != 1:
            raise AttributeError("The task has multiple outputs. Please reference the output by its name.")
        return next(iter(self._outputs.values()))

    def after(self, *tasks):
        for task in tasks:
            assert isinstance(task, PipelineTask), task
            self.upstream.append(task)
        return self

    def set_display_name(self, name: str):
        self.display_name = name
        return self

    def set_caching_options(self, enable_caching: bool, cache_key=None):
        self.caching = enable_caching
        return self

    def depends_on(self):
        return self.upstream + [v.task for v in self.arguments.values() if isinstance(v, Channel) and v.task]


class PythonComponent(Component):
    """Its function is sent to the pod as text: it may use nothing but its arguments and what it imports itself."""

    def __init__(self, func):
        inputs, signature = {}, inspect.signature(func)
        for name, parameter in signature.parameters.items():
            kind = parameter.annotation
            optional = parameter.default is not inspect.Parameter.empty
            inputs[name] = InputSpec(kind.kind if isinstance(kind, _Marker) else OF_VALUES[kind], optional)
        outputs = {} if signature.return_annotation in (inspect.Signature.empty, None) else {
            "Output": OF_VALUES[signature.return_annotation]}
        super().__init__(func.__name__.replace("_", "-"), inputs, outputs)
        source = inspect.getsource(func)
        names = {}
        exec(source[source.index("def "):].replace("dsl.Input[dsl.Artifact]", "object"), names)  # pylint: disable=exec-used
        self.alone = names[func.__name__]


def component(func=None, *, base_image=None, target_image=None, packages_to_install=None, pip_index_urls=None, output_component_file=None,
              install_kfp_package=True, kfp_package_path=None, pip_trusted_hosts=None, use_venv=False, additional_funcs=None,
              embedded_artifact_path=None, task_config_passthroughs=None):
    return PythonComponent(func) if func else PythonComponent


class _Pipeline:
    current = None

    def __init__(self, func, name, description):
        self.name, self.description, self.tasks, self.inputs = name, description, [], {}
        channels = []
        for key, parameter in inspect.signature(func).parameters.items():
            self.inputs[key] = parameter.default
            channels.append(Channel(key, OF_VALUES[parameter.annotation]))
        assert _Pipeline.current is None, "Nested pipelines are not allowed."
        _Pipeline.current = self
        try:
            func(*channels)
        finally:
            _Pipeline.current = None
        if not self.tasks:
            raise ValueError("Task is missing from pipeline.")

    def order(self):
        """The tasks, each behind those that it depends on."""
        done = []
        while len(done) < len(self.tasks):
            ready = [t for t in self.tasks if t not in done and all(d in done for d in t.depends_on())]
            assert ready, "the tasks wait for each other"
            done += ready
        return done


def pipeline(func=None, *, name=None, description=None, pipeline_root=None, display_name=None, pipeline_config=None):
    if func is None:
        return functools.partial(pipeline, name=name, description=description, pipeline_root=pipeline_root, display_name=display_name,
                                 pipeline_config=pipeline_config)
    return _Pipeline(func, name or func.__name__, description)


def cast(kind, default):
    """A default of a component's YAML, which is text, as the value that it stands for."""
    if kind == "Boolean":
        return {"true": True, "false": False}[default.lower()]
    return {"String": str, "Integer": int, "Float": float, "List": json.loads, "Dict": json.loads}[kind](default)
