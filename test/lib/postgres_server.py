"""A PostgreSQL server of a test's own: Debian's, on a loopback port, with TLS; user and database `sonde`.

Pods reach it with Postgres(address=cluster.address[0], name="postgres"): at that address of the rig's host, too, from its network alone,
and with a certificate for that name.

    with Postgres() as server:
        ... programs use server.url() with $PGPASSWORD = PASSWORD, or server.password_file ...
"""

import contextlib
import glob
import ipaddress
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile

from sonde_test import Process, wait

PASSWORD = "pw-" + secrets.token_hex(8)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_certificate(key, certificate, name="localhost"):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN={name}", "-addext", f"subjectAltName=IP:127.0.0.1,DNS:{name}", "-keyout", key, "-out", certificate],
                   check=True, stderr=subprocess.DEVNULL)
    os.chmod(key, 0o600)


class Postgres:
    """A server of our own on a loopback port, with TLS; user and database `sonde`."""

    def __init__(self, address=None, name="localhost"):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        assert found, "PostgreSQL's server is missing: scripts/deps cluster"
        self.bin = os.path.dirname(found[-1])
        # It refuses to run as root.
        self.user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        self.as_user = ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups"] if self.user else []
        self.port = free_port()
        self.address, self.name = address, name
        self.process = None

    def own(self, *paths):
        for path in paths if self.user else ():
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o600)
        return path

    def __enter__(self):
        # Not below $TMPDIR, which may be for root alone.
        self.dir = tempfile.mkdtemp(prefix="sonde-postgres-", dir="/tmp")
        os.chmod(self.dir, 0o711)
        self.data = os.path.join(self.dir, "data")
        os.mkdir(self.data, 0o700)
        self.root_password = self.file("root-password", PASSWORD + "-root\n")
        self.password_file = self.file("password", PASSWORD + "\n")
        self.own(self.data, self.root_password)
        try:
            subprocess.run([*self.as_user, self.bin + "/initdb", "-D", self.data, "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8",
                            "--locale=C", "--no-sync", "--pwfile", self.root_password],
                           check=True, stdout=subprocess.DEVNULL, cwd="/")
            make_certificate(self.data + "/server.key", self.data + "/server.crt", self.name)
            self.own(self.data + "/server.key", self.data + "/server.crt")
            self.authority = shutil.copy(self.data + "/server.crt", self.dir)
            self.admit()
            self.start()
            self.sql(f"CREATE ROLE sonde LOGIN PASSWORD '{PASSWORD}'", "CREATE DATABASE sonde OWNER sonde")
        except BaseException:
            self.__exit__()
            raise
        return self

    def admit(self):
        """The rig's hosts and pods have addresses of one /16."""
        if self.address:
            with open(self.data + "/pg_hba.conf", "a", encoding="utf-8") as f:
                f.write(f"hostssl sonde sonde {ipaddress.ip_network(self.address + '/16', strict=False)} scram-sha-256\n")

    def start(self):
        places = ",".join(filter(None, ("127.0.0.1", self.address)))
        self.process = Process(*self.as_user, self.bin + "/postgres", "-D", self.data, "-p", str(self.port), "-k", "", "-c", "fsync=off",
                               "-c", f"listen_addresses={places}", "-c", "ssl=on", "-c", "max_connections=40", cwd="/")
        self.process.expect("database system is ready", 120)

    def children(self):
        """Its processes, each of which leads a session of its own."""
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    def signal_all(self, number):
        """The server and its children."""
        for pid in [self.process.pid, *self.children()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self, number=signal.SIGINT):
        self.signal_all(signal.SIGCONT)
        children = self.children()
        self.process.signal(number)
        self.process.wait(90)
        self.process = None
        # Of one that was killed they go when they notice: until then they answer whom they serve, and no other server can start.
        wait(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), 90, "the server's processes to be gone")

    def __exit__(self, *_):
        if self.process:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.dir, ignore_errors=True)

    def sql(self, *statements, database="postgres"):
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                               f"host=127.0.0.1 port={self.port} user=postgres dbname={database}", *sum((["-c", s] for s in statements), [])],
                              env={**os.environ, "PGPASSWORD": PASSWORD + "-root"}, capture_output=True, text=True, timeout=60,
                              check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def url(self, schema=None, user="sonde", database="sonde", password=None):
        """SCHEMA: only that is seen, and made. The server is there afterwards, whatever another test has done to it."""
        if not self.process:
            self.start()
        options = ""
        if schema:
            self.sql(f"CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION sonde", database=database)
            options = f"?options=-csearch_path%3D{schema}"
        return f"postgres://{user}{':' + password if password else ''}@127.0.0.1:{self.port}/{database}{options}"
