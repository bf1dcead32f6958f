"""control_planes - the control planes that a run of the tests shares.

Three at most, each started when the run begins and stopped when its last test has ended. `shared` is used by many tests
at a time, each in namespaces of its own; `fragile` and `node` by one test at a time.
"""

import os
import signal
import subprocess
import sys

from catalog import ROOT

sys.path.append(os.path.join(ROOT, "test", "lib"))
from planes import PLANES, obstacle  # name: (arguments of `cluster up`, environment)

RIG = os.path.join(ROOT, "test", "cluster", "cluster")
CONCURRENT = {"shared"}


def rig(run, *args):
    return subprocess.run([RIG, *args], env={**os.environ, "KCLUSTER_RUN": run}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


class Plane:
    def __init__(self, name, directory, logs):
        self.name = name
        self.run = os.path.join(directory, name)
        self.output = os.path.join(logs, f"plane-{name}.log")
        arguments, environment = PLANES[name]
        self.obstacle = obstacle(arguments)  # why it cannot be started
        self.stopped = bool(self.obstacle)
        if self.obstacle:
            return
        with open(self.output, "wb") as log:
            self._up = subprocess.Popen([RIG, "up", *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env={**os.environ, **environment, "KCLUSTER_RUN": self.run},
                                        start_new_session=True)

    def ready(self):
        """None: still starting; otherwise whether it came up."""
        if self.obstacle:
            return False
        code = self._up.poll()
        return None if code is None else code == 0

    def environment(self):
        return {f"SONDE_PLANE_{self.name.upper()}": self.run, "KCLUSTER_RUN": self.run,
                "KUBECONFIG": os.path.join(self.run, "admin.kubeconfig")}

    def stop(self):
        if self.stopped:
            return
        self.stopped = True
        if self._up.poll() is None:
            os.killpg(self._up.pid, signal.SIGTERM)
            self._up.wait()
        rig(self.run, "down")
