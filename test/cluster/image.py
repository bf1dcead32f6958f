#!/usr/bin/python3
"""Images: reproducible, small, with a list of what is in them; and a pod runs from one on a real node."""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from e2e_images import ML, archive_of, made
from postgres_server import PASSWORD, Postgres
from sonde_test import ROOT, SOAK, ControlPlane, diag, main, wait

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


SHIPPED = (*LIMITS, ML)
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
MOZILLA = "usr/share/ca-certificates/mozilla"


@contextlib.contextmanager
def opened(name):
    """The layer and the configuration of a shipped image."""
    with tarfile.open(archive_of(cluster, name)) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as layer:
            yield layer, json.load(archive.extractfile(manifest["Config"]))


def parts_of(name):
    with open(archive_of(cluster, name).removesuffix(".tar") + ".spdx.json", encoding="utf-8") as f:
        return json.load(f)


def they_are_as_small_as_promised():
    for name, limit in LIMITS.items():
        with opened(name) as (layer, _):
            size = sum(member.size for member in layer.getmembers())
        diag(f"{name}: {size / (1 << 20):.1f} MiB, {os.path.getsize(archive_of(cluster, name)) / (1 << 20):.1f} compressed")
        assert size < limit, (name, size)


def nobody_special_runs_them_and_they_trust_whom_mozilla_does():
    """The user is not root, and the certificates are those of the package, whatever this machine trusts besides"""
    for name in SHIPPED:
        with opened(name) as (layer, config):
            assert config["config"]["User"] not in ("", "0", "root", "0:0"), config
            bundle, mozilla = layer.extractfile(CERTIFICATES).read().decode(), packaged(layer if name == ML else None)
            assert len(mozilla) > 100 and bundle == "".join(mozilla), name
        [package] = [p for p in parts_of(name)["packages"] if p["name"] == "ca-certificates"]
        assert f"/{CERTIFICATES} is its {len(mozilla)} files" in package["comment"], package


def packaged(layer):
    """The certificates of the package ca-certificates, one by one: of this machine's, or of the one that a LAYER has whole."""
    paths = glob.glob(f"/{MOZILLA}/*.crt") if not layer else [n for n in layer.getnames() if n.startswith(MOZILLA) and n.endswith(".crt")]
    texts = []
    for path in sorted(paths):
        with layer.extractfile(path) if layer else open(path, "rb") as f:
            texts.append(f.read().decode())
    return texts


def the_same_commit_gives_the_same_digest():
    again = os.path.join(tmp, "again")
    subprocess.run([IMAGE + "s", *LIMITS, "--out", again], check=True, stdout=subprocess.DEVNULL)
    for file in sorted(os.listdir(again)):
        with open(os.path.join(again, file), "rb") as x, open(os.path.join(made(cluster), file), "rb") as y:
            assert x.read() == y.read(), file


PROGRAMS = {"sonde": "usr/bin/sonde", "sonde-pod": "sonde-pod"}


def nothing_tells_where_they_were_built():
    """Neither program has a path of this checkout in it, or a build id, which is a hash of such paths too: another one gives the same"""
    for name, path in PROGRAMS.items():
        with opened(name) as (layer, _):
            data = layer.extractfile(path).read()
        assert ROOT.encode() not in data, name
        assert b".text\0" in data and b".note.gnu.build-id\0" not in data, name


def another_checkout_gives_the_same_digest():
    """Built from nothing in a folder with another name, the images are the same bytes"""
    other = os.path.join(tmp, "a-folder-with-a-longer-name-than-that-of-this-one")
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for file in files.splitlines():
        os.makedirs(os.path.dirname(os.path.join(other, file)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, file), os.path.join(other, file), follow_symlinks=False)
    subprocess.run(["scripts/build", "programs"], cwd=other, check=True, stdout=subprocess.DEVNULL)
    when = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    subprocess.run(["scripts/images", *LIMITS, "--out", "out"], cwd=other, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": when})
    for file in sorted(os.listdir(os.path.join(other, "out"))):
        with open(os.path.join(other, "out", file), "rb") as x, open(os.path.join(made(cluster), file), "rb") as y:
            assert x.read() == y.read(), file


def a_list_of_parts_is_beside_each():
    for name in SHIPPED:
        sbom = parts_of(name)
        packages = {p["SPDXID"]: p for p in sbom["packages"]}
        assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["SPDXID"] == "SPDXRef-DOCUMENT"
        assert len(packages) == len(sbom["packages"]) and all(p["versionInfo"] for p in packages.values()), packages
        for relation in sbom["relationships"]:
            assert relation["relatedSpdxElement"] in packages, relation
        names = {p["name"] for p in packages.values()}
        wanted = {"sonde-pod": {"libssl-dev", "libc6-dev", "node-llhttp"}, ML: {"python3-sklearn", "python3-dask", "libc6", "libssl3"}}.get(
            name, {"libssl3", "libc6", "libpq5", "libsqlite3-0", "node-llhttp"})
        assert wanted | {"ca-certificates"} <= names, names


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


def it_verifies_a_database_by_what_mozilla_trusts():
    """With `sslmode=verify-full` and no more, as docs/install.md has it: a certificate that nobody has signed is refused, and not the want of any"""
    root = os.path.join(tmp, "root-verify")
    with opened("sonde") as (layer, config), Postgres() as server:
        layer.extractall(root)
        environment = {**dict(word.split("=", 1) for word in config["config"]["Env"]), "HOME": "/", "PGPASSWORD": PASSWORD}
        done = subprocess.run(["/usr/sbin/chroot", "--userspec=65532:65532", root, "/usr/bin/sonde", "history", "--history",
                               server.url() + "?sslmode=verify-full"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "certificate verify failed" in done.stderr, done


def a_pod_runs_from_it():
    archive = os.path.join(tmp, "a.tar")
    make(archive)
    cluster.rig("load", archive)
    with cluster.namespace("image") as ns:
        pods = f"/api/v1/namespaces/{ns}/pods"
        wait(lambda: cluster.api().post(pods, POD)[0] == 201, 120, "a pod, once its account has a token")

        def phase():
            return cluster.api().get(f"{pods}/hello")[1]["status"]["phase"]

        wait(lambda: phase() in ("Succeeded", "Failed"), 400, "the pod has ended")
        assert phase() == "Succeeded", cluster.kubectl("describe", "pod", "hello", "-n", ns)
        assert cluster.kubectl("logs", "hello", "-n", ns) == "hello from uid 1000\n"


with ControlPlane.of("node") as cluster, tempfile.TemporaryDirectory() as tmp:
    hello = os.path.join(tmp, "hello")
    subprocess.run(["gcc", "-static", "-xc", "-", "-o", hello], input=SOURCE, text=True, check=True)
    tests = [the_same_program_gives_the_same_bytes, the_image_holds_the_program_and_runs_it_as_nobody_special,
             they_are_as_small_as_promised, nobody_special_runs_them_and_they_trust_whom_mozilla_does,
             the_same_commit_gives_the_same_digest, nothing_tells_where_they_were_built, a_list_of_parts_is_beside_each,
             a_program_starts_with_nothing_but_its_image, it_verifies_a_database_by_what_mozilla_trusts, a_pod_runs_from_it]
    if SOAK:
        tests.append(another_checkout_gives_the_same_digest)
    main(*tests)
