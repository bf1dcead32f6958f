"""A client of Sonde's REST API for tests: plain HTTP or TLS, one connection a request; and one of its live stream."""

import http.client
import json
import queue
import threading


class Web:
    """ADDRESS is (host, port). TOKEN None: nothing is sent as one."""

    def __init__(self, address, token=None, context=None):
        self.address, self.token, self.context = address, token, context

    def _connect(self, timeout=300):
        if self.context:
            return http.client.HTTPSConnection(*self.address, context=self.context, timeout=timeout)
        return http.client.HTTPConnection(*self.address, timeout=timeout)

    def headers(self, more):
        return {**({"Authorization": "Bearer " + self.token} if self.token else {}), **(more or {})}

    def ask(self, method, path, body=None, headers=None):
        """Status, headers, text."""
        connection = self._connect()
        try:
            data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request(method, path, data, self.headers(headers))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def __call__(self, method, path, body=None, headers=None):
        """Status and the decoded body; text where it is no JSON."""
        status, _, data = self.ask(method, path, body, headers)
        try:
            return status, json.loads(data) if data else None
        except ValueError:
            return status, data.decode("utf-8", "replace")

    def get(self, path, **more):
        return self("GET", path, **more)

    def post(self, path, body=None, **more):
        return self("POST", path, body, **more)

    def stream(self, query=""):
        return Stream(self, "/api/v1/runs/stream" + query)


class Stream:
    """Server-sent events, read by a thread: `next()` gives (event, data)."""

    def __init__(self, web, path):
        self.connection = web._connect(timeout=300)
        self.connection.request("GET", path, None, web.headers(None))
        self.answer = self.connection.getresponse()
        self.status = self.answer.status
        self.events = queue.Queue()
        if self.status == 200:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        event, data = None, []
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("data: "):
                    data.append(line[6:])
                elif not line and event:
                    self.events.put((event, json.loads("\n".join(data))))
                    event, data = None, []
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass
        self.events.put(("end", None))

    def next(self, seconds=60):
        return self.events.get(timeout=seconds)

    def until(self, passes, seconds=60):
        """The first event that PASSES, and all before it."""
        seen = []
        while True:
            event = self.next(seconds)
            if passes(*event):
                return event[1], seen
            assert event[0] != "end", seen
            seen.append(event)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
