"""A command in a real terminal: tmux, with a server of its own.

    with Terminal("sonde watch ap/x", 80, 24, env) as t:
        t.shows("Measuring")
        t.resize(200, 24)
        t.keys("q")
        assert t.code() == 0
"""

import os
import re
import secrets
import shlex
import subprocess
import time

from sonde_test import wait

PATIENCE = 120


class Terminal:
    def __init__(self, argv, columns, rows, env):
        self._argv, self._size, self._env, self._name = argv, (columns, rows), env, "sonde-" + secrets.token_hex(4)

    def _tmux(self, *words):
        return subprocess.run(["tmux", "-L", self._name, "-f", "/dev/null", *words], env=self._env, capture_output=True, text=True,
                              check=True, timeout=PATIENCE).stdout

    def __enter__(self):
        self._env = {**os.environ, "LC_ALL": "C.UTF-8", **self._env}
        self._env.pop("TMUX", None)
        command = f"trap : INT; printf 'before\\n'; {shlex.join(self._argv)}; echo \"exit status $?\"; exec sleep 1000"
        self._tmux("new-session", "-d", "-x", str(self._size[0]), "-y", str(self._size[1]), "sh", "-c", command)
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-L", self._name, "kill-server"], check=False, capture_output=True)

    def screen(self):
        """What is to be seen, without the blanks at the ends."""
        return self._tmux("capture-pane", "-p").rstrip("\n")

    def shows(self, pattern, seconds=PATIENCE, steady=True):
        """Waits until PATTERN is to be seen; the screen. Not STEADY: of what is drawn all the time."""
        def seen():
            text = self.screen()
            assert re.search(pattern, text, re.M), text
            if not steady:
                return text
            time.sleep(0.1)
            assert self.screen() == text, "it is being drawn"
            return text
        return wait(seen, seconds, pattern)

    def keys(self, *names):
        self._tmux("send-keys", *names)

    def resize(self, columns, rows):
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def cursor_is_shown(self):
        return self._tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def code(self, seconds=PATIENCE):
        """The exit status, once it has ended."""
        return int(re.search(r"^exit status (\d+)", self.shows(r"^exit status \d+", seconds), re.M)[1])
