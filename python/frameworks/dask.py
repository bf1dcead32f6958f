"""Dask: scikit-learn's estimators on the workers of a cluster, its own (threads of this process) or one that is there."""

import importlib
import logging
import os
import pkgutil
import zipfile

from .common import cpus, text, unavailable, whole
from .sklearn import Spread


class Dask(Spread):
    NAME = "dask"
    MODULES = ("dask", "distributed", "sklearn")
    NEEDS = "the packages dask, distributed and scikit-learn (Debian's python3-dask, python3-distributed, python3-sklearn)"
    OPTIONS = {"scheduler_address": text(), "n_workers": whole(1, 1024)}

    def __init__(self):
        self._client = self._cluster = self._address = None

    def start(self, job, scratch):
        super().start(job, scratch)
        distributed = importlib.import_module("distributed")
        self._address = job.options.get("scheduler_address") or os.environ.get("DASK_SCHEDULER_ADDRESS")
        if self._address:
            try:
                self._client = distributed.Client(self._address, timeout=30)
            except (OSError, ValueError) as e:  # nobody there, or not an address
                raise unavailable(f"no dask scheduler answers at {self._address} ({e}): set scheduler_address or "
                                  "DASK_SCHEDULER_ADDRESS, or leave both out for a cluster inside the pod") from e
            self._client.upload_file(archive(scratch))
            return
        self._cluster = distributed.LocalCluster(
            n_workers=job.options.get("n_workers", cpus()), threads_per_worker=1, processes=False,
            dashboard_address=None, local_directory=scratch, silence_logs=logging.ERROR)
        self._client = distributed.Client(self._cluster)

    def stop(self):
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()

    def elsewhere(self):
        return self._address is not None

    def options_of(self):
        found = {"n_workers": len(self._client.nthreads())}  # scheduler_info() lists five at most in newer versions
        if self._address:
            found["scheduler_address"] = self._address
        return found

    def map(self, function, shared, items):
        # Nothing is hashed: the data is large, and used once. In this process nothing is copied either.
        together = self._client.scatter([shared], hash=False, broadcast=self.elsewhere())[0]
        apart = self._client.scatter(list(items), hash=False)
        return self._client.gather([self._client.submit(function, together, item, pure=False) for item in apart])


def archive(scratch):
    """A zip file of these adapters, for workers that have never heard of them."""
    path, package = os.path.join(scratch, "frameworks.zip"), importlib.import_module(__package__)
    with zipfile.ZipFile(path, "w") as made:
        for name in ["__init__"] + [module.name for module in pkgutil.iter_modules(package.__path__)]:
            source = package.__loader__.get_data(os.path.join(package.__path__[0], name + ".py"))  # a folder's, or an archive's
            made.writestr(f"{__package__}/{name}.py", source)
    return path


ADAPTER = Dask
