"""Parameters of estimators: what is not known, or of another type, is refused as TypeConverters do."""


def to_int(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise TypeError(f"Could not convert {value} to int")
    return int(value)


def to_float(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"Could not convert {value} to float")
    return float(value)


def to_bool(value):
    if type(value) is not bool:  # pylint: disable=unidiomatic-typecheck
        raise TypeError(f"Boolean Param requires value of type bool. Found {type(value)}")
    return value


def to_string(value):
    if not isinstance(value, str):
        raise TypeError(f"Could not convert {type(value)} to string type")
    return value


def to_ints(value):
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"Could not convert {value} to list of ints")
    return [to_int(v) for v in value]


class Params:
    """PARAMS: name -> (converter, default)."""

    PARAMS = {}

    def __init__(self, **given):
        self._values = {name: default for name, (_, default) in self.PARAMS.items()}
        for name, value in given.items():
            if name not in self.PARAMS:
                raise TypeError(f"__init__() got an unexpected keyword argument '{name}'")
            try:
                self._values[name] = None if value is None else self.PARAMS[name][0](value)
            except TypeError as e:
                raise TypeError(f'Invalid param value given for param "{name}". {e}') from e

    def getOrDefault(self, param):
        if param not in self._values:
            raise ValueError(f"Param {param} does not exist.")
        return self._values[param]
