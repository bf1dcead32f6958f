"""Ray brings its own copy of cloudpickle."""

from cloudpickle import dumps, loads, register_pickle_by_value  # pylint: disable=unused-import
