#!/usr/bin/python3
"""The image of `make image`: reproducible, and a pod runs from it on a real node."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, ControlPlane, diag, main, wait

IMAGE = os.path.join(ROOT, "scripts", "image")
SOURCE = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("hello from uid %d\\n", (int)getuid()); return 0; }\n'
POD = {"metadata": {"name": "hello"},
       "spec": {"restartPolicy": "Never", "containers": [{"name": "hello", "image": "localhost/hello:1"}]}}


def make(archive, when="1700000000"):
    subprocess.run([IMAGE, hello, archive, "--name", "localhost/hello:1"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": when})
    with open(archive, "rb") as f:
        return f.read()


def the_same_program_gives_the_same_bytes():
    assert make(os.path.join(tmp, "a.tar")) == make(os.path.join(tmp, "b.tar"))
    assert make(os.path.join(tmp, "a.tar")) != make(os.path.join(tmp, "b.tar"), "1800000000")


def the_image_holds_the_program_and_runs_it_as_nobody_special():
    make(os.path.join(tmp, "a.tar"))
    with tarfile.open(os.path.join(tmp, "a.tar")) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        config = json.load(archive.extractfile(manifest["Config"]))["config"]
        with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as layer:
            names = layer.getnames()
    assert manifest["RepoTags"] == ["localhost/hello:1"]
    assert config["Entrypoint"] == ["/hello"] and config["User"] == "1000:1000", config
    assert names == ["etc", "etc/group", "etc/passwd", "hello", "tmp"], names


def a_pod_runs_from_it():
    archive = os.path.join(tmp, "a.tar")
    make(archive)
    with ControlPlane(node=True) as cluster:
        cluster.rig("load", archive)
        status, body = cluster.api().post("/api/v1/namespaces/default/pods", POD)
        assert status == 201, body

        def phase():
            return cluster.api().get("/api/v1/namespaces/default/pods/hello")[1]["status"]["phase"]

        wait(lambda: phase() in ("Succeeded", "Failed"), 60, "the pod has ended")
        assert phase() == "Succeeded", cluster.kubectl("describe", "pod", "hello")
        assert cluster.kubectl("logs", "hello") == "hello from uid 1000\n"


with tempfile.TemporaryDirectory() as tmp:
    hello = os.path.join(tmp, "hello")
    subprocess.run(["gcc", "-static", "-xc", "-", "-o", hello], input=SOURCE, text=True, check=True)
    tests = [the_same_program_gives_the_same_bytes, the_image_holds_the_program_and_runs_it_as_nobody_special]
    if os.getuid() == 0:
        tests.append(a_pod_runs_from_it)
    else:
        diag("not root: no node can be started, so no pod runs from the image")
    main(*tests)
