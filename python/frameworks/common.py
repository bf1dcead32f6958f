"""What every framework shares: the request and its parameters, the data, the region that counts, the Adapter itself."""

import difflib
import importlib
import json
import math
import os
import pkgutil
import resource
import shutil
import tempfile
import time

# --- why it failed ----------------------------------------------------------------


class Refused(Exception):
    """A failure with a reason for programs and a sentence for people. STATUS is what the process ends with."""

    def __init__(self, reason, message, status=1):
        super().__init__(message)
        self.reason, self.status = reason, status


def invalid(message):
    return Refused("InvalidParameter", message, 2)


def unsupported(message):
    return Refused("Unsupported", message, 2)


def unavailable(message):
    return Refused("FrameworkUnavailable", message, 69)


# --- parameters -------------------------------------------------------------------


class Rule:
    """Which values a parameter may have: SAYS it to people, ACCEPTS says it of one value."""

    def __init__(self, says, accepts):
        self.says, self.accepts = says, accepts

    def __or__(self, other):
        return Rule(f"{self.says}, or {other.says}", lambda v: self.accepts(v) or other.accepts(v))


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def whole(low=None, high=None):
    bounds = "" if low is None else f" of at least {low}" if high is None else f" from {low} to {high}"
    return Rule("a whole number" + bounds, lambda v: _is_whole(v) and (low is None or v >= low) and (high is None or v <= high))


def number(low=None, high=None, above=False):
    """ABOVE: LOW itself is not allowed."""
    bounds = f" above {low}" if above else "" if low is None else f" of at least {low}"
    bounds += "" if high is None else f" and at most {high}"

    def accepts(value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        return (low is None or value > low or (value == low and not above)) and (high is None or value <= high)

    return Rule("a number" + bounds, accepts)


def word(*words):
    return Rule("one of " + ", ".join(words), lambda v: isinstance(v, str) and v in words)


def text():
    return Rule("a text", lambda v: isinstance(v, str) and v != "")


def truth():
    return Rule("true or false", lambda v: isinstance(v, bool))


def null():
    return Rule("null", lambda v: v is None)


def sizes():
    return Rule("a list of whole numbers of at least 1",
                lambda v: isinstance(v, list) and v != [] and all(_is_whole(i) and i >= 1 for i in v))


# One parameter under the names that the frameworks have for it: who says another's is told his own.
SPELLINGS = (
    ("n_estimators", "numTrees", "num_parallel_tree", "num_trees", "n_trees", "numberOfTrees"),
    ("max_depth", "maxDepth"),
    ("max_iter", "maxIter", "num_boost_round", "epochs"),
    ("C", "regParam", "reg_lambda", "weight_decay", "alpha"),
    ("hidden_layer_sizes", "hiddenLayers", "hidden_sizes", "layers"),
    ("learning_rate_init", "stepSize", "lr", "learning_rate"),
    ("min_samples_leaf", "minInstancesPerNode", "min_child_weight"),
    ("max_features", "featureSubsetStrategy", "colsample_bynode"),
    ("max_samples", "subsamplingRate", "subsample"),
    ("criterion", "impurity"),
    ("fit_intercept", "fitIntercept"),
    ("l1_ratio", "elasticNetParam"),
    ("batch_size", "blockSize"),
    ("n_select", "nSelect", "n_features_to_select", "k"),
    ("cv", "numFolds", "n_splits"),
    ("n_workers", "num_cpus", "master", "n_jobs", "nthread"),
    ("scheduler_address", "address", "head_address", "master", "master_url"),
)
ELSEWHERE = {  # what is no parameter, because it is said elsewhere
    "random_state": "the seed is spec.seed (SONDE_SEED)", "seed": "the seed is spec.seed (SONDE_SEED)",
    "datasetSize": "it is a member of mlConfig", "dataset_size": "it is mlConfig.datasetSize",
    "nFeatures": "it is a member of mlConfig", "n_features": "it is mlConfig.nFeatures",
    "task": "it is mlConfig.task", "framework": "it is a member of its own",
}


def _hint(name, known, framework):
    if name in ELSEWHERE:
        return "; " + ELSEWHERE[name]
    for names in SPELLINGS:
        ours = [other for other in names if other in known]
        if name in names and ours:
            return f"; {framework} calls it {ours[0]}"
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def check_value(name, rule, value):
    if not rule.accepts(value):
        raise invalid(f"parameter {name} is {json.dumps(value)[:100]}: it must be {rule.says}")
    return value


# --- the request --------------------------------------------------------------------

ALGORITHMS = ("random_forest", "logistic_regression", "svm", "neural_network")
METHODS = ("filter", "wrapper", "embedded")
ROWS_MIN, ROWS_MAX, FEATURES_MAX, COMBINATIONS_MAX = 50, 10 ** 9, 10 ** 6, 200
MOVED = 256  # rows that are moved at a time

# Of each task: rows and features when nobody says how many, and its own parameters with what they are otherwise.
TASKS = {
    "train": (10000, 20, {}),
    "feature_selection": (10000, 100, {"method": (word(*METHODS), "filter"), "n_select": (whole(1, FEATURES_MAX), 20),
                                       "step": (whole(1, FEATURES_MAX), None)}),
    "hyperparameter_tuning": (5000, 50, {"cv": (whole(2, 20), 3)}),
    "distributed_training": (100000, 100, {"n_partitions": (whole(1, 1024), 4)}),
}
MEMBERS = {"framework": text(), "task": text() | null(), "algorithm": text() | null(), "parameters": None,
           "datasetSize": whole(1, ROWS_MAX) | null(), "nFeatures": whole(1, FEATURES_MAX) | null(),
           "nSelect": whole(1, FEATURES_MAX) | null()}


def frameworks():
    """The names of the files that are frameworks."""
    package = importlib.import_module(__package__)
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in ("common", "tasks"))


def framework(name):
    """The adapter of that name; its framework is not imported yet."""
    if name not in frameworks():
        raise invalid(f"there is no framework {name!r}; there are {', '.join(frameworks())}")
    return importlib.import_module(f"{__package__}.{name}").ADAPTER()


class Job:
    """What is asked for, checked as far as it can be without the framework."""

    def __init__(self, request, environment=None):
        environment = os.environ if environment is None else environment
        given = self._read(request)
        self.adapter = framework(request.get("framework", "sklearn"))
        self.task = self._task(request, given)
        self.algorithm = self._algorithm(request, given)
        self.adapter.supports(self.task, self.algorithm)
        rows, features, own = TASKS[self.task]
        self.rows = self._rows(request, environment, rows)
        self.features = request.get("nFeatures") or features
        self.seed = self._seed(environment)
        self.settings = {name: default for name, (_, default) in own.items()}  # of the task
        if "n_select" in own and request.get("nSelect"):
            self.settings["n_select"] = request["nSelect"]
        self.options, self.parameters, self.grid = {}, {}, {}  # of the framework, of the estimator, to be tried
        for name, value in given.items():
            self._place(name, value)
        if self.task == "hyperparameter_tuning" and not self.grid:
            candidates = self.adapter.GRIDS.get(self.algorithm, {})
            self.grid = {name: values for name, values in candidates.items() if name not in self.parameters}
        self._check_counts()

    @staticmethod
    def _read(request):
        if not isinstance(request, dict):
            raise invalid("the request is not an object")
        for name, value in request.items():
            if name not in MEMBERS:
                raise invalid(f"the request has no member {name!r}; there are {', '.join(MEMBERS)}")
            if MEMBERS[name]:
                check_value(name, MEMBERS[name], value)
        given = request.get("parameters") or {}
        if not isinstance(given, dict):
            raise invalid("parameters is not an object")
        return dict(given)

    @staticmethod
    def _task(request, given):
        task = request.get("task")
        if task is None:  # these two belong to one task alone
            task = "feature_selection" if {"method", "n_select"} & set(given) else "train"
        if task not in TASKS:
            raise invalid(f"there is no task {task!r}; there are {', '.join(TASKS)}")
        return task

    @staticmethod
    def _algorithm(request, given):
        named = [a for a in (request.get("algorithm"), given.pop("algorithm", None)) if a is not None]
        if len(named) == 2 and named[0] != named[1]:
            raise invalid(f"algorithm is {named[0]!r}, and parameters.algorithm {named[1]!r}: say one")
        algorithm = named[0] if named else "random_forest"
        if algorithm not in ALGORITHMS:
            raise invalid(f"there is no algorithm {algorithm!r}; there are {', '.join(ALGORITHMS)}")
        return algorithm

    @staticmethod
    def _rows(request, environment, otherwise):
        if request.get("datasetSize"):
            return request["datasetSize"]
        size = environment.get("SONDE_INPUT_SIZE")
        if not size:
            return otherwise
        if not size.isdecimal() or not 1 <= int(size) <= ROWS_MAX:
            raise invalid(f"SONDE_INPUT_SIZE is {size!r}: it must be a whole number from 1 to {ROWS_MAX}")
        return int(size)

    @staticmethod
    def _seed(environment):
        seed = environment.get("SONDE_SEED") or "0"
        if not seed.isdecimal() or int(seed) >= 2 ** 64:
            raise invalid(f"SONDE_SEED is {seed!r}: it must be a whole number below 2^64")
        return int(seed)

    def known(self):
        """All parameters of this job, by name."""
        rules = {"algorithm": word(*ALGORITHMS)}
        rules.update({name: rule for name, (rule, _) in TASKS[self.task][2].items()})
        rules.update(self.adapter.TASK_PARAMETERS.get(self.task, {}))
        rules.update(self.adapter.OPTIONS)
        rules.update(self.adapter.ALGORITHMS[self.algorithm])
        return rules

    def _place(self, name, value):
        known, adapter = self.known(), self.adapter
        if name not in known:
            raise invalid(f"{adapter.NAME} {self.algorithm} ({self.task}) has no parameter {name!r}"
                          f"{_hint(name, known, adapter.NAME)}; there are {', '.join(sorted(known))}")
        rule = known[name]
        if name not in adapter.ALGORITHMS[self.algorithm]:
            where = self.options if name in adapter.OPTIONS else self.settings
            where[name] = check_value(name, rule, value)
        elif self.task == "hyperparameter_tuning" and isinstance(value, list) and value and not rule.accepts(value):
            self.grid[name] = [check_value(name, rule, one) for one in value]
        else:
            self.parameters[name] = check_value(name, rule, value)

    def _check_counts(self):
        if self.rows < ROWS_MIN:
            raise invalid(f"the data has {self.rows} rows (datasetSize, or inputSize): at least {ROWS_MIN} are needed")
        if self.settings.get("n_select", 0) > self.features:
            raise invalid(f"n_select is {self.settings['n_select']}, and there are {self.features} features (nFeatures)")
        tried = math.prod(len(values) for values in self.grid.values())
        if tried > COMBINATIONS_MAX:
            raise invalid(f"{tried} combinations of parameters are too many: at most {COMBINATIONS_MAX} are tried")


# --- the data -------------------------------------------------------------------------


class Data:
    """Rows of features (x) with their labels, 0 or 1 (y), and the names of the features; NATIVE is the framework's form."""

    def __init__(self, x, y, names, native=None):
        self.x, self.y, self.names, self.native = x, y, names, native

    def rows(self, index):
        return Data(self.x[index], self.y[index], self.names)

    def columns(self, index):
        return Data(self.x[:, index], self.y, [self.names[i] for i in index])


def make_data(seed, rows, features):
    """Data that can be learnt, but not without errors; the same for the same seed, everywhere.

    A tenth of the features (2 to 10) decide the label, by a weighted sum with noise: a tenth of the labels are
    beyond anybody. Both labels are as frequent."""
    np = importlib.import_module("numpy")
    random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32])  # the old generator: its numbers never change
    informative = min(features, max(2, min(10, features // 10)))
    x = random.standard_normal((rows, features))
    which = random.permutation(features)[:informative]
    weights = random.uniform(0.6, 1.4, informative) * random.choice([-1.0, 1.0], informative)
    score = x[:, which] @ weights
    score += random.standard_normal(rows) * 0.35 * float(np.sqrt((weights ** 2).sum()))
    y = (score > np.median(score)).astype(np.int64)
    data = Data(x, y, [f"feature_{i}" for i in range(features)])
    data.informative = sorted(int(i) for i in which)
    return data


def _fold(y, i, count):
    """Which rows are in the I-th of COUNT folds, as truths; it has its share of both labels."""
    np = importlib.import_module("numpy")
    held = np.zeros(len(y), dtype=bool)
    for label in (0, 1):
        held[np.flatnonzero(y == label)[i::count]] = True
    return held


class Folds:
    """(the rest, the fold) for each of COUNT folds. A pair is made when it is asked for and not kept: each is as large as
    all of DATA, and what they take would count as the framework's."""

    def __init__(self, data, count):
        self._data, self._count = data, count

    def __iter__(self):
        for i in range(self._count):
            held = _fold(self._data.y, i, self._count)
            yield self._data.rows(~held), self._data.rows(held)


def hold_out(data, count):
    """(the rest, the first of COUNT folds), using DATA up: the rest moves together in its place, and is never there twice."""
    np = importlib.import_module("numpy")
    held = _fold(data.y, 0, count)
    fold, rest = data.rows(held), np.flatnonzero(~held)
    for i in range(0, len(rest), MOVED):  # forwards only, so that nothing is written over before it has moved
        rows = rest[i:i + MOVED]
        data.x[i:i + len(rows)] = data.x[rows]
    x, data.x = data.x, None
    x.resize((len(rest), x.shape[1]), refcheck=False)  # nobody else has it
    return Data(x, data.y[rest], data.names), fold


def part_seed(seed, i=0):
    """A seed for the I-th part of the work, in the range that every framework takes."""
    return (seed ^ (seed >> 32) ^ (0x9E3779B1 * i)) % (2 ** 31)


# --- what it costs ----------------------------------------------------------------------


def _children():
    """CPU seconds (user, system) of the living processes that descend from this one: a JVM, a cluster's processes."""
    parent, times = {}, {}
    tick = os.sysconf("SC_CLK_TCK")
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                fields = f.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it has just ended
        parent[int(pid)] = int(fields[1])
        user, system, waited_user, waited_system = map(int, fields[11:15])
        times[int(pid)] = ((user + waited_user) / tick, (system + waited_system) / tick)
    user = system = 0.0
    for pid, spent in times.items():
        above = parent[pid]
        while above > 1 and above != os.getpid():
            above = parent.get(above, 0)
        if above == os.getpid():
            user, system = user + spent[0], system + spent[1]
    return user, system


def _cpu():
    """User and system seconds of this process, of the children it has waited for, and of those that live."""
    user, system = _children()
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        user, system = user + usage.ru_utime, system + usage.ru_stime
    return user, system


class Region:
    """The part that counts: `with region: ...`, once or several times. ELSEWHERE: the work is done on other machines, whose
    CPU is not seen."""

    def __init__(self, elsewhere=False):
        self.elsewhere, self.seconds = elsewhere, {}

    def __enter__(self):
        self._cpu = None if self.elsewhere else _cpu()
        self._wall = time.perf_counter()

    def __exit__(self, *_):
        self._add("wall", time.perf_counter() - self._wall)
        if not self.elsewhere:
            for name, before, after in zip(("user", "sys"), self._cpu, _cpu()):
                self._add(name, max(0.0, after - before))

    def _add(self, name, seconds):
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def cpus():
    """How many CPUs there are for us: by affinity, and by the cgroup's quota."""
    count = len(os.sched_getaffinity(0))
    for path in ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"):
        try:
            with open(path, encoding="ascii") as f:
                quota, *period = f.read().split()
            if not period:
                with open(path.replace("quota", "period"), encoding="ascii") as f:
                    period = f.read().split()
            if quota.isdecimal() and int(period[0]) > 0:
                count = min(count, max(1, math.ceil(int(quota) / int(period[0]))))
        except (OSError, ValueError, IndexError):
            continue
    return count


class Scratch:
    """A directory of our own, gone at the end; beside the metrics file where there is no other place to write."""

    def __enter__(self):
        try:
            self.path = tempfile.mkdtemp(prefix="sonde-ml-")
        except OSError:
            beside = os.path.dirname(os.environ.get("SONDE_METRICS_FILE", "")) or None
            self.path = tempfile.mkdtemp(prefix="sonde-ml-", dir=beside)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


# --- a framework --------------------------------------------------------------------------


class Adapter:
    """What the tasks ask of a framework. A framework's file has a subclass with the tables and at least fit(), outputs()
    and parameters_of(); what is native to it, it does its own way by overriding the rest."""

    NAME = ""
    MODULES = ()  # what must be importable, in this order
    NEEDS = ""  # how they come into an image
    TASKS = tuple(TASKS)
    ALGORITHMS = {}  # algorithm: {parameter of the estimator: Rule}
    OPTIONS = {}  # parameter of the framework: Rule
    TASK_PARAMETERS = {}  # task: {parameter beyond those that every framework has: Rule}
    GRIDS = {}  # algorithm: {parameter: what is tried when nobody says what}

    def supports(self, task, algorithm):
        """Refuses what this framework cannot do at all."""
        if task not in self.TASKS or algorithm not in self.ALGORITHMS:
            raise unsupported(f"{self.NAME} has no {task} of {algorithm}; it has {', '.join(self.TASKS)} of "
                              f"{', '.join(self.ALGORITHMS)}")

    def load(self):
        """Imports the framework."""
        for name in (*self.MODULES, "numpy"):
            try:
                importlib.import_module(name)
            except ImportError as e:
                raise unavailable(f"{self.NAME} is not in this image ({e}): it needs {self.NEEDS}; name an image that has it "
                                  f"with the operator's --ml-image") from e

    def start(self, job, scratch):
        """Before the data is made: connects to a cluster, or starts one. SCRATCH is a directory until the end."""

    def stop(self):
        """The end, also after a failure."""

    def elsewhere(self):
        """Whether the work is done on machines whose CPU time cannot be seen from here."""
        return False

    def options_of(self):
        """The options that are in effect, as the framework says them."""
        return {}

    def prepare(self, data):
        """Brings DATA into the framework's own form (data.native), outside the region that counts. Returns it."""
        return data

    def columns(self, data, index):
        """DATA with these features only, prepared."""
        return self.prepare(data.columns(index))

    def fit(self, algorithm, parameters, data, seed):
        """A fitted model."""
        raise NotImplementedError

    def outputs(self, model, data):
        """("probability" of label 1 | "margin", above 0 for label 1; an array of one number a row)."""
        raise NotImplementedError

    def parameters_of(self, algorithm, model):
        """The parameters of the estimator, read back from the fitted model."""
        raise NotImplementedError

    def importances(self, model):  # pylint: disable=unused-argument
        """One number a feature, at least 0, where the model has such; None: it has not."""
        return None

    def weights(self, model):
        """What features are selected by."""
        return self.importances(model)

    def accuracy(self, model, data):
        kind, values = self.outputs(model, data)
        return float(((values > (0.5 if kind == "probability" else 0)) == (data.y == 1)).mean())

    def loss(self, model, data):
        """(name, mean over the rows): log loss of probabilities, hinge loss of margins."""
        np = importlib.import_module("numpy")
        kind, values = self.outputs(model, data)
        if kind == "margin":
            return "hinge", float(np.maximum(0, 1 - values * (2 * data.y - 1)).mean())
        right = np.clip(np.where(data.y == 1, values, 1 - values), 1e-15, 1)
        return "log", float(-np.log(right).mean())

    def scores(self, job, data):  # pylint: disable=unused-argument
        """One number a feature, by itself: how much it tells about the label. F of the analysis of variance."""
        zero, one = data.x[data.y == 0], data.x[data.y == 1]
        within = ((zero - zero.mean(0)) ** 2).sum(0) + ((one - one.mean(0)) ** 2).sum(0)
        return (zero.mean(0) - one.mean(0)) ** 2 / (within + 1e-300)

    def choose(self, job, data, count):
        """The COUNT features that a filter keeps, as indexes."""
        return largest(self.scores(job, data), count)

    def worker(self):
        """What does the fitting where map() runs: self, or what can be sent there."""
        return self

    def map(self, function, shared, items):
        """[function(shared, item) ...], at once where the framework can."""
        return [function(shared, item) for item in items]

    def rounds(self, pairs):
        """The pairs (rest, fold) that each search() goes over, prepared. PAIRS are made as they are gone through: here one
        after the other, and nothing of the one before is kept."""
        return map(lambda pair: [tuple(map(self.prepare, pair))], pairs)

    def search(self, function, shared, combinations):
        """map() for tuning."""
        return self.map(function, shared, combinations)

    def release(self, pairs):
        """What rounds() gave is not needed any more: lets go of what the framework would keep of it."""

    def distribute(self, job, data):
        """A model of DATA, trained in parts. Here: the rows are dealt out, and the models of the parts vote."""
        raise unsupported(f"{self.NAME} has no distributed_training")


def largest(values, count):
    """The indexes of the COUNT largest, in ascending order; of equal ones the first."""
    order = sorted(range(len(values)), key=lambda i: (-float(values[i]), i))
    return sorted(order[:count])
