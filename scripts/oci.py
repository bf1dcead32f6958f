"""Image archives without Docker, the same bytes for the same content.

An archive is an OCI image layout that also has the manifest.json of `docker save`, so that `docker load`, `podman load`,
`skopeo copy oci-archive:`, `ctr images import` and `cluster load` read it. All times in it are one moment.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import platform
import posixpath
import shutil
import subprocess
import tarfile
import tempfile
import time

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MEDIA = "application/vnd.oci.image."


def architecture():
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def source_date():
    """SOURCE_DATE_EPOCH, or the time of the last commit, or 0 outside a repository."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=os.path.dirname(os.path.abspath(__file__)),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0


def iso(when):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))


def encode(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


class Layer:
    """Files by path, in whatever order they are added; directories above them come by themselves."""

    def __init__(self):
        self.entries = {}

    def _add(self, path, kind, mode, **more):
        path = posixpath.normpath(path.lstrip("/"))
        above = posixpath.dirname(path)
        if above and above not in self.entries:
            self._add(above, tarfile.DIRTYPE, 0o755)
        if kind != tarfile.DIRTYPE or path not in self.entries:
            self.entries[path] = (kind, mode, more)

    def directory(self, path, mode=0o755):
        self.entries.pop(path.lstrip("/"), None)
        self._add(path, tarfile.DIRTYPE, mode)

    def text(self, path, text, mode=0o644):
        self._add(path, tarfile.REGTYPE, mode, data=text.encode())

    def file(self, path, source, mode=None):
        if mode is None:
            mode = 0o755 if os.stat(source).st_mode & 0o100 else 0o644
        self._add(path, tarfile.REGTYPE, mode, source=source)

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777, target=target)

    def write(self, out, when):
        """As a tar to the file OUT, in the order of paths."""
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(self.entries):
                kind, mode, more = self.entries[path]
                entry = tarfile.TarInfo(path)
                entry.type, entry.mode, entry.mtime = kind, mode, when
                entry.linkname = more.get("target", "")
                if "source" in more:
                    entry.size = os.stat(more["source"]).st_size
                    with open(more["source"], "rb") as data:
                        archive.addfile(entry, data)
                else:
                    entry.size = len(more.get("data", b""))
                    archive.addfile(entry, io.BytesIO(more.get("data", b"")))


class _Hashed:
    """A file that is written, and its digest."""

    def __init__(self, out):
        self.out, self.sum, self.size = out, hashlib.sha256(), 0

    def write(self, data):
        self.sum.update(data)
        self.size += len(data)
        return self.out.write(data)

    def tell(self):
        return self.size

    def flush(self):
        self.out.flush()

    def digest(self):
        return "sha256:" + self.sum.hexdigest()


def _pack(layer, path, when):
    """Writes the layer compressed to PATH: the digests without and with compression, and the size."""
    with open(path, "wb") as f:
        packed = _Hashed(f)
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as zipped:
            plain = _Hashed(zipped)
            layer.write(plain, when)
    return plain.digest(), packed.digest(), packed.size


def _member(archive, name, data, when):
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime, entry.size = 0o644, when, len(data)
    archive.addfile(entry, io.BytesIO(data))


def _layout(archive, name, blobs, manifest, config, layer, when):
    """The files that say what is in the archive."""
    described = {"mediaType": MEDIA + "manifest.v1+json", "digest": manifest[0], "size": len(manifest[1]),
                 "annotations": {"io.containerd.image.name": name,
                                 "org.opencontainers.image.ref.name": name.rpartition(":")[2]}}
    index = {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [described]}
    docker = [{"Config": "blobs/" + config.replace(":", "/"), "RepoTags": [name],
               "Layers": ["blobs/" + layer.replace(":", "/")]}]
    _member(archive, "oci-layout", encode({"imageLayoutVersion": "1.0.0"}), when)
    _member(archive, "index.json", encode(index), when)
    _member(archive, "manifest.json", encode(docker), when)
    for digest, data in blobs:
        _member(archive, "blobs/" + digest.replace(":", "/"), data, when)


def write_image(path, name, layer, config, when, created_by):
    """Writes the archive; returns the image's digest and the size of its compressed layer."""
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))))
        packed = os.path.join(scratch, "layer")
        plain_digest, digest, size = _pack(layer, packed, when)
        config = encode({"architecture": architecture(), "os": "linux", "created": iso(when), "config": config,
                         "rootfs": {"type": "layers", "diff_ids": [plain_digest]},
                         "history": [{"created": iso(when), "created_by": created_by}]})
        config_digest = "sha256:" + hashlib.sha256(config).hexdigest()
        manifest = encode({"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
                           "config": {"mediaType": MEDIA + "config.v1+json", "digest": config_digest, "size": len(config)},
                           "layers": [{"mediaType": MEDIA + "layer.v1.tar+gzip", "digest": digest, "size": size}]})
        manifest_digest = "sha256:" + hashlib.sha256(manifest).hexdigest()
        with tarfile.open(os.path.join(scratch, "archive"), "w", format=tarfile.PAX_FORMAT) as archive:
            _layout(archive, name, [(config_digest, config), (manifest_digest, manifest)], (manifest_digest, manifest),
                    config_digest, digest, when)
            entry = tarfile.TarInfo("blobs/" + digest.replace(":", "/"))
            entry.mode, entry.mtime, entry.size = 0o644, when, size
            with open(packed, "rb") as data:
                archive.addfile(entry, data)
        shutil.move(os.path.join(scratch, "archive"), path)
    return manifest_digest, size
