"""Sessions and data frames, as lists of rows."""

import os

from pyspark.ml.linalg import DenseVector


class Row(tuple):
    """A row: by index and by name."""

    def __new__(cls, names, values):
        made = super().__new__(cls, values)
        made.names = names
        return made

    def __getitem__(self, key):
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)


class DataFrame:
    def __init__(self, session, columns, rows):
        self._session, self._rows, self.columns, self._cached = session, rows, list(columns), False

    def _alive(self):
        assert self._session.sparkContext is not None, "the session is stopped"

    def cache(self):
        self._alive()
        if not self._cached:
            self._cached = True
            self._session.cached += 1
            SparkSession.most_cached = max(SparkSession.most_cached, self._session.cached)
        return self

    def unpersist(self, blocking=False):  # pylint: disable=unused-argument
        self._alive()
        assert self._cached, "it is not cached"
        self._cached = False
        self._session.cached -= 1
        return self

    def count(self):
        self._alive()
        return len(self._rows)

    def collect(self):
        self._alive()
        return [Row(self.columns, row) for row in self._rows]

    def select(self, *columns):
        self._alive()
        for name in columns:
            assert name in self.columns, f"AnalysisException: no column {name} in {self.columns}"
        at = [self.columns.index(name) for name in columns]
        return DataFrame(self._session, columns, [[row[i] for i in at] for row in self._rows])

    def withColumnRenamed(self, existing, new):
        return DataFrame(self._session, [new if c == existing else c for c in self.columns], self._rows)

    def with_values(self, **more):
        """Ours: with columns at the end."""
        self._alive()
        for name in more:
            assert name not in self.columns, f"IllegalArgumentException: output column {name} already exists"
        rows = [[*row, *values] for row, values in zip(self._rows, zip(*more.values()))]
        return DataFrame(self._session, [*self.columns, *more], rows)

    def column(self, name):
        """Ours: the values of a column."""
        return [row[0] for row in self.select(name)._rows]


class SparkContext:
    def __init__(self, master):
        self.master = master


class Builder:
    def __init__(self):
        self._options = {}

    def config(self, key=None, value=None, conf=None, *, map=None):  # pylint: disable=redefined-builtin,unused-argument
        assert isinstance(key, str) and isinstance(value, (str, int, float, bool)), (key, value)
        assert key.startswith("spark."), key
        self._options[key] = str(value)
        return self

    def appName(self, name):
        return self.config("spark.app.name", name)

    def master(self, master):
        import re  # pylint: disable=import-outside-toplevel
        assert re.fullmatch(r"local(\[(\d+|\*)\])?|spark://[\w.-]+:\d+|yarn|k8s://.+", master), f"Could not parse Master URL: {master}"
        return self.config("spark.master", master)

    def getOrCreate(self):
        assert int(self._options["spark.default.parallelism"]) >= 1
        if os.environ.get("JAVA_HOME") == "/nowhere":
            raise RuntimeError("Java gateway process exited before sending its port number")
        return SparkSession(self._options)


class _BuilderProperty:
    def __get__(self, instance, owner):
        return Builder()


class SparkSession:
    builder = _BuilderProperty()
    most_cached = 0  # ours: how many frames were cached at once

    def __init__(self, options):
        self.sparkContext, self.cached = SparkContext(options["spark.master"]), 0

    def createDataFrame(self, data, schema=None, samplingRatio=None, verifySchema=True):  # pylint: disable=unused-argument
        assert self.sparkContext is not None, "the session is stopped"
        assert isinstance(data, list) and data and isinstance(schema, list)
        for row in data:
            assert isinstance(row, tuple) and len(row) == len(schema), row
            assert all(isinstance(v, (DenseVector, float, int, str)) for v in row), f"TypeError: cannot infer the schema of {row}"
        return DataFrame(self, schema, data)

    def stop(self):
        assert self.sparkContext is not None, "stopped twice"
        self.sparkContext = None
