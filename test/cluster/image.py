#!/usr/bin/python3
"""Images: reproducible, small, with a list of what is in them; and a pod runs from one on a real node."""

import contextlib
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


# --- those that are shipped

LIMITS = {"sonde": 40 << 20, "sonde-pod": 8 << 20, "kubeflow-component": 40 << 20}  # bytes, unpacked


def made():
    """The folder with the shipped images, made once; sonde-ml is downloaded from Debian, and tested where it is used."""
    folder = os.path.join(tmp, "images")
    if not os.path.exists(folder):
        subprocess.run([IMAGE + "s", *LIMITS, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


@contextlib.contextmanager
def opened(name):
    """The layer and the configuration of a shipped image."""
    with tarfile.open(os.path.join(made(), name + ".tar")) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as layer:
            yield layer, json.load(archive.extractfile(manifest["Config"]))


def they_are_as_small_as_promised_and_nobody_special_runs_them():
    for name, limit in LIMITS.items():
        with opened(name) as (layer, config):
            size = sum(member.size for member in layer.getmembers())
            diag(f"{name}: {size / (1 << 20):.1f} MiB, {os.path.getsize(os.path.join(made(), name + '.tar')) / (1 << 20):.1f} compressed")
            assert size < limit, (name, size)
            assert config["config"]["User"] not in ("", "0", "root", "0:0"), config
            assert "etc/ssl/certs/ca-certificates.crt" in layer.getnames(), name


def the_same_commit_gives_the_same_digest():
    again = os.path.join(tmp, "again")
    subprocess.run([IMAGE + "s", *LIMITS, "--out", again], check=True, stdout=subprocess.DEVNULL)
    for file in sorted(os.listdir(again)):
        with open(os.path.join(again, file), "rb") as x, open(os.path.join(made(), file), "rb") as y:
            assert x.read() == y.read(), file


def a_list_of_parts_is_beside_each():
    for name in LIMITS:
        with open(os.path.join(made(), name + ".spdx.json"), encoding="utf-8") as f:
            sbom = json.load(f)
        packages = {p["SPDXID"]: p for p in sbom["packages"]}
        assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["SPDXID"] == "SPDXRef-DOCUMENT"
        assert len(packages) == len(sbom["packages"]) and all(p["versionInfo"] for p in packages.values()), packages
        for relation in sbom["relationships"]:
            assert relation["relatedSpdxElement"] in packages, relation
        names = {p["name"] for p in packages.values()}
        wanted = {"libssl-dev", "libc6-dev"} if name == "sonde-pod" else {"libssl3", "libc6", "libpq5", "libsqlite3-0"}
        assert wanted | {"node-llhttp", "ca-certificates"} <= names, names


def a_program_starts_with_nothing_but_its_image():
    """All libraries are there, libpq's too, and the zones of schedules"""
    for name, argv in (("sonde", ["/usr/bin/sonde", "version"]), ("sonde-pod", ["/sonde-pod", "version"])):
        root = os.path.join(tmp, "root-" + name)
        with opened(name) as (layer, _):
            layer.extractall(root)
        done = subprocess.run(["/usr/sbin/chroot", "--userspec=65532:65532", root, *argv], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.startswith(name), done
        if name == "sonde":
            assert os.path.exists(os.path.join(root, "usr/share/zoneinfo/Europe/Berlin"))
            done = subprocess.run(["/usr/sbin/chroot", root, *argv[:1], "history", "--history", "postgres://x@127.0.0.1:1/x"],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 1 and "libpq" not in done.stderr, done


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
    tests = [the_same_program_gives_the_same_bytes, the_image_holds_the_program_and_runs_it_as_nobody_special,
             they_are_as_small_as_promised_and_nobody_special_runs_them, the_same_commit_gives_the_same_digest,
             a_list_of_parts_is_beside_each]
    if os.getuid() == 0:
        tests += [a_program_starts_with_nothing_but_its_image, a_pod_runs_from_it]
    else:
        diag("not root: no node can be started, so no pod runs from the image")
    main(*tests)
