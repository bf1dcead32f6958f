"""fault_proxy - runs build/test/fault-proxy in front of a control plane's API server; its --help tells of the faults."""

import base64
import json
import os
import re
import ssl
import tempfile

from sonde_test import Api, Process, program


class FaultProxy(Process):
    """A proxy with faults by a SCRIPT (text) or a SEED; without both it is transparent.

        with FaultProxy(cluster, script="match WATCH * nth=1 -> cut lines=2") as proxy:
            ... programs use proxy.kubeconfig ...
            assert proxy.faults()["cut"] == 1
    """

    def __init__(self, cluster, script=None, seed=None, intensity=None, until=None):
        self._dir = tempfile.TemporaryDirectory(prefix="sonde-proxy-")  # pylint: disable=consider-using-with
        self.kubeconfig = self._file("kubeconfig")
        self.log_file = self._file("log")
        options = ["--listen", "127.0.0.1:0", "--upstream", cluster.kubeconfig, "--kubeconfig-out", self.kubeconfig,
                   "--log", self.log_file]
        if script is not None:
            with open(self._file("script"), "w", encoding="utf-8") as f:
                f.write(script)
            options += ["--script", self._file("script")]
        if seed is not None:
            options += ["--seed", str(seed)]
        if intensity is not None:
            options += ["--intensity", str(intensity)]
        if until is not None:
            options += ["--until", str(until)]
        super().__init__(program("test/fault-proxy"), *options)
        try:
            self.address = ("127.0.0.1", int(self.expect(r"^listening on \S+:(\d+)$")[1]))
            with open(self.kubeconfig, encoding="utf-8") as f:
                ca = re.search(r"certificate-authority-data:\s*(\S+)", f.read())[1]
            self.authority = base64.b64decode(ca).decode()
            self.context = ssl.create_default_context(cadata=self.authority)
        except BaseException:
            self.stop()
            raise

    def _file(self, name):
        return os.path.join(self._dir.name, name)

    def api(self, token=None, timeout=60):
        """A client of the API through the proxy: as the control plane's administrator, or with a bearer token."""
        return Api(*self.address, self.context, token, timeout)

    def _control(self, method, what, body=None):
        api = self.api(timeout=120)
        try:
            status, answer = api.request(method, "/__faults/" + what, body, "text/plain")
        finally:
            api.close()
        assert status == 200, answer
        return answer

    def off(self):
        """No further faults; those that have begun go on."""
        self._control("POST", "off")

    def on(self):
        """Faults again, with the counts of the rules where they were."""
        self._control("POST", "on")

    def script(self, text):
        """Replaces the script; faults are on."""
        self._control("POST", "script", text)

    def stats(self):
        """{"enabled", "requests", "forwarded", "errors", "faults": {...}, "total"}."""
        return self._control("GET", "stats")

    def faults(self):
        """How often each fault was made so far: "cut", "answer", "answer-410", ..."""
        return self.stats()["faults"]

    def count(self, fault):
        return self.faults().get(fault, 0)

    def log(self):
        """What was forwarded and what was made to fail, as dictionaries."""
        with open(self.log_file, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def logged(self, **members):
        """The lines of the log that have all these members."""
        return [line for line in self.log() if all(line.get(k) == v for k, v in members.items())]

    def __exit__(self, *_):
        code = self.stop(60)  # a kill would be no answer to whether it ended well
        self._dir.cleanup()
        assert code == 0, f"the fault proxy ended with {code}:\n" + "\n".join(self.lines[-30:])
