"""planes - the three control planes that the tests of `make test-cluster` share.

  shared   many tests at a time, each in namespaces of its own, and none that changes anything else for good
  fragile  one test at a time, which may stop, kill, compact or restore what it likes and leaves a working plane
  node     one test at a time; with a kubelet
"""

AUDITED = {"KCLUSTER_AUDIT": "1"}
GPUS = 16
CPUS = 64  # the node claims so many: the seeds' requests are for a larger machine
ENFORCE = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"

# name: (arguments of `cluster up`, environment)
PLANES = {
    "shared": (["--control-plane-only"], AUDITED),
    "fragile": (["--control-plane-only"], AUDITED),
    "node": ([], {**AUDITED, "KCLUSTER_RESOURCES": f"nvidia.com/gpu={GPUS}", "KCLUSTER_CPUS": str(CPUS),
                  "KCLUSTER_APISERVER_ARGS": ENFORCE}),
}
