"""side - one of the two API servers that are compared: how to reach it, with HTTP and with kubectl."""

import base64
import http.client
import json
import os
import queue
import re
import socket
import ssl
import subprocess
import tempfile
import threading

from sonde_test import kubectl_path


class Side:
    """An API server as a kubeconfig names it. Connections are kept open and lent to one case at a time."""

    def __init__(self, label, kubeconfig, directory, token):
        self.label = label
        self.token = token  # in the names of namespaces and groups: sides that are one server must not meet
        self.kubeconfig = os.path.realpath(kubeconfig)
        self.home = os.path.join(directory, label)
        os.makedirs(self.home)
        with open(kubeconfig, encoding="utf-8") as f:
            text = f.read()
        self.server = re.search(r"server: *\"?(https?://[^\s\"]+)", text)[1].rstrip("/")
        match = re.match(r"https://\[?([^\]/]+?)\]?:(\d+)$", self.server)
        self.host, self.port = match[1], int(match[2])
        authority = self._field(text, "certificate-authority").decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._stranger = ssl.create_default_context(cadata=authority)
        self._headers = {"User-Agent": "conformance/1"}
        bearer = re.search(r"\btoken: *\"?([^\s\"}]+)", text)
        if bearer:
            self._headers["Authorization"] = "Bearer " + bearer[1]
        else:
            with tempfile.NamedTemporaryFile(dir=directory) as pair:
                pair.write(self._field(text, "client-certificate") + self._field(text, "client-key"))
                pair.flush()
                self._context.load_cert_chain(pair.name)
        self._idle = queue.SimpleQueue()
        self.fixtures, self.lock = {}, threading.Lock()

    def _field(self, text, name):
        """The PEM of a kubeconfig's field, which holds it or names a file."""
        data = re.search(rf"\b{name}-data: *\"?([\w+/=]+)", text)
        if data:
            return base64.b64decode(data[1])
        with open(re.search(rf"\b{name}: *\"?([^\s\"}}]+)", text)[1], "rb") as f:
            return f.read()

    def connect(self, timeout=120):
        connection = http.client.HTTPSConnection(self.host, self.port, context=self._context, timeout=timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, connection, method, path, body=None, headers=None):
        connection.request(method, path, body, {**self._headers, **(headers or {})})
        return connection.getresponse()

    def request(self, method, path, body=None, headers=None):
        """(status, content type, bytes) of one request on a kept connection."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self.connect()
        for last in (False, True):
            try:
                response = self.send(connection, method, path, body, headers)
                data = response.read()
                break
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                connection.close()
                if last:
                    raise
                connection = self.connect()  # a kept connection that the server had closed in the meantime
        if response.will_close:
            connection.close()
        else:
            self._idle.put(connection)
        return response.status, response.headers.get("Content-Type"), data

    def as_stranger(self, method, path, headers):
        """(status, content type, bytes) of a request without our credentials."""
        connection = http.client.HTTPSConnection(self.host, self.port, context=self._stranger, timeout=120)
        try:
            connection.request(method, path, None, headers)
            response = connection.getresponse()
            return response.status, response.headers.get("Content-Type"), response.read()
        finally:
            connection.close()

    def call(self, method, path, body=None, content_type="application/json", headers=None):
        """(status, decoded body or None), for what is not recorded."""
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        status, _, data = self.request(method, path, body, {"Content-Type": content_type, **(headers or {})})
        try:
            return status, json.loads(data)
        except ValueError:
            return status, None

    def kubectl(self, argv, stdin=None, env=None, timeout=240):
        done = subprocess.run([kubectl_path(), *argv], input=stdin or "", env=self._env(env), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, cwd=self.home)
        return done.returncode, done.stdout, done.stderr

    def kubectl_start(self, argv, env=None):
        return subprocess.Popen([kubectl_path(), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=self._env(env), text=True, cwd=self.home)

    def _env(self, more):
        return {"PATH": os.environ["PATH"], "HOME": self.home, "KUBECONFIG": self.kubeconfig, "TZ": "UTC", **(more or {})}
