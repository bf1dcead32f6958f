"""kfp.compiler: writes the names of a pipeline's tasks, in order."""

import json

from . import dsl


class Compiler:
    def compile(self, pipeline_func, package_path, pipeline_name=None, pipeline_parameters=None, type_check=True):
        assert isinstance(pipeline_func, dsl._Pipeline), "a function with @dsl.pipeline is wanted"
        with open(package_path, "w", encoding="utf-8") as f:
            json.dump([t.display_name or t.component.name for t in pipeline_func.order()], f)
