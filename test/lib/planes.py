"""planes - the three control planes that the tests of `make test-cluster` share.

  shared   many tests at a time, each in namespaces of its own, and none that changes anything else for good
  fragile  one test at a time, which may stop, kill, compact or restore what it likes and leaves a working plane
  node     one test at a time; with a kubelet, which root alone can start

Each enforces what some clusters do: the maker of an object that blocks its owner's deletion must be allowed to write the
owner's finalizers.
"""

import os

GPUS = 16
CPUS = 64  # the node claims so many: the seeds' requests are for a larger machine
COMMON = {"KCLUSTER_AUDIT": "1",
          "KCLUSTER_APISERVER_ARGS": "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"}

# name: (arguments of `cluster up`, environment)
PLANES = {
    "shared": (["--control-plane-only"], COMMON),
    "fragile": (["--control-plane-only"], COMMON),
    "node": ([], {**COMMON, "KCLUSTER_RESOURCES": f"nvidia.com/gpu={GPUS}", "KCLUSTER_CPUS": str(CPUS)}),
}


def kubernetes(program):
    """The path of one of the programs that `test/cluster/cluster build` makes."""
    cache = os.environ.get("KCLUSTER_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kcluster")
    return os.path.join(cache, "bin", program)


def obstacle(arguments=("--control-plane-only",)):
    """Why no control plane can be started with these arguments of `cluster up`, in a sentence; None if one can."""
    if not os.path.exists(kubernetes("kube-apiserver")):
        return "Kubernetes is not built: run `make test-cluster`, or test/cluster/cluster build"
    if "--control-plane-only" not in arguments and os.getuid() != 0:
        return "a node needs root: run `sudo make test-cluster`"
    return None
