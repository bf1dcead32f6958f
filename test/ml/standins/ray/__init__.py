"""A stand-in for Ray 2: one worker, a process that knows nothing but what is sent to it."""

import atexit
import os
import pickle
import subprocess
import sys

from ray import cloudpickle

_SERVE = """
import pickle, sys, struct
while True:
    head = sys.stdin.buffer.read(8)
    if len(head) < 8:
        break
    try:
        function, arguments, named = pickle.loads(sys.stdin.buffer.read(struct.unpack("<Q", head)[0]))
        answer = True, function(*arguments, **named)
    except Exception as e:
        answer = False, repr(e)
    import cloudpickle
    data = cloudpickle.dumps(answer)
    sys.stdout.buffer.write(struct.pack("<Q", len(data)) + data)
    sys.stdout.buffer.flush()
"""
_state = {"worker": None, "spare": None, "cpus": 0}


class ObjectRef:
    def __init__(self, value):
        self.pickled = cloudpickle.dumps(value)


def is_initialized():
    return _state["worker"] is not None


def init(address=None, *, num_cpus=None, num_gpus=None, resources=None, labels=None, object_store_memory=None,
         local_mode=False, ignore_reinit_error=False, include_dashboard=None, dashboard_host="127.0.0.1", dashboard_port=None,
         job_config=None, configure_logging=True, logging_level="info", logging_format=None, logging_config=None,
         log_to_driver=None, namespace=None, runtime_env=None):  # pylint: disable=unused-argument
    if is_initialized():
        raise RuntimeError("Maybe you called ray.init twice by accident?")
    if address is not None and not isinstance(address, str):
        raise TypeError(address)
    if address and (num_cpus is not None or num_gpus is not None):
        raise ValueError("When connecting to an existing cluster, num_cpus and num_gpus must not be provided.")
    if address and "nowhere" in address:
        raise ConnectionError(f"ray client connection timeout: {address}")
    assert num_cpus is None or (isinstance(num_cpus, int) and num_cpus >= 0)
    # The test's own folders are not for the worker: a cluster does not have them.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    _state["worker"] = _state["spare"] or subprocess.Popen([sys.executable, "-c", _SERVE], stdin=subprocess.PIPE,
                                                           stdout=subprocess.PIPE, env=env, cwd="/")
    _state["cpus"] = num_cpus or 3


def shutdown(_exiting_interpreter=False):  # pylint: disable=unused-argument
    if is_initialized():  # it stays for the next session: it takes a second to load what it needs
        _state["spare"], _state["worker"] = _state["worker"], None


@atexit.register
def end():
    """Ours: no worker is left behind."""
    worker = _state["worker"] or _state["spare"]
    if worker:
        worker.stdin.close()
        worker.wait()


def call(function, /, *arguments, **named):
    """Ours: runs it in the worker."""
    assert is_initialized(), "ray is not initialized"
    worker, data = _state["worker"], cloudpickle.dumps((function, arguments, named))
    worker.stdin.write(len(data).to_bytes(8, "little") + data)
    worker.stdin.flush()
    good, value = pickle.loads(worker.stdout.read(int.from_bytes(worker.stdout.read(8), "little")))
    if not good:
        raise RuntimeError("RayTaskError: " + value)
    return value


class RemoteFunction:
    def __init__(self, function):
        self._function = function

    def __call__(self, *arguments, **named):
        raise TypeError("Remote functions cannot be called directly.")

    def remote(self, *arguments, **named):
        return ObjectRef(call(self._function, *[get(a) if isinstance(a, ObjectRef) else a for a in arguments], **named))


def remote(function):
    assert callable(function)
    return RemoteFunction(function)


def put(value):
    assert is_initialized() and not isinstance(value, ObjectRef), "Calling 'put' on an ray.ObjectRef is not allowed."
    return ObjectRef(value)


def get(object_refs, *, timeout=None):  # pylint: disable=unused-argument
    assert is_initialized()
    if isinstance(object_refs, list):
        return [get(ref) for ref in object_refs]
    if not isinstance(object_refs, ObjectRef):
        raise ValueError("'object_refs' must either be an ObjectRef or a list of ObjectRefs.")
    return pickle.loads(object_refs.pickled)


def cluster_resources():
    assert is_initialized()
    return {"CPU": float(_state["cpus"]), "memory": 1e9}
