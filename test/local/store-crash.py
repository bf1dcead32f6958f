#!/usr/bin/python3
"""The store under `kill -9`: what was acknowledged is there, nothing is half there, revisions go on.

build/test/store-writer writes with eight writers and prints every acknowledgement; it is killed at a random moment and
started again on the same file, 40 times (200 in the long form). The history is short there, so rows are being deleted
all the time too.
"""

import contextlib
import fcntl
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import QUICK, SOAK, diag, main, program, wait

KILLS = 200 if SOAK else 10 if QUICK else 40
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
rng = random.Random(SEED)


class World:
    """All that was acknowledged or seen, as the store must show it from then on."""

    def __init__(self):
        self.rev = 1  # newest that is known to be durable
        self.writes = {}  # revision: (writer, n, what)
        self.objects = {}  # name: (revision, writer, n, what)

    def add(self, rev, writer, n, what):
        assert rev == self.rev + 1, f"revision {rev} came after {self.rev}"
        self.rev = rev
        self.writes[rev] = writer, n, what
        name = f"w{writer}-{int(n) // 4 % 5}"
        if what == "-":
            del self.objects[name]
        else:
            self.objects[name] = rev, writer, n, what


def whole(text):
    """The revision, writer, number and kind of write of a TEXT that is complete."""
    head, writer, n, what, rest = text.split(":", 4)
    fill, tail = rest.rsplit(":", 1)
    assert head == tail and len(fill) == 200 + int(n) * 37 % 1500 and not fill.strip("x"), f"half a text: {text!r}"
    return int(head), writer, n, what


def check_start(world, lines):
    """What a start found against what was acknowledged before; LINES are "found ..." to "ready"."""
    _, rev, oldest = lines[0].split()
    rev, oldest = int(rev), int(oldest)
    assert rev >= world.rev, f"acknowledged up to {world.rev}, found {rev}"
    changes, objects = {}, {}
    for line in lines[1:-1]:
        kind, *rest = line.split(" ")
        if kind == "object":
            name, text = rest
            objects[name] = whole(text)
        else:
            number, _, text = rest
            changes[int(number)] = whole(text)
    assert sorted(changes) == list(range(oldest + 1, rev + 1)), "the history has a gap"
    for number, (inside, *write) in sorted(changes.items()):
        assert inside == number, f"revision {number} has the text of {inside}"
        if number > world.rev:  # written and not acknowledged: it may be there, and then it stays
            world.add(number, *write)
        assert world.writes[number] == tuple(write), f"revision {number} is another write"
    assert rev == world.rev, f"the newest is {rev}, its change {world.rev}"
    assert objects == world.objects, f"found {objects}, expected {world.objects}"
    return oldest


def start(directory, *options):
    writer = subprocess.Popen([program("test/store-writer"), directory, *options], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL)
    lines = []
    while not lines or lines[-1] != "ready":
        line = writer.stdout.readline()
        assert line, f"the writer ended with {writer.wait()} before it was ready"
        lines.append(line.decode().rstrip("\n"))
    return writer, lines


def kill_at_some_moment(world, writer):
    """Kills WRITER after a few acknowledgements and a random time, and hears it out."""
    time.sleep(rng.uniform(0, 0.08))
    if rng.random() < 0.5:
        select.select([writer.stdout], [], [], 60)
    writer.kill()
    rest = writer.stdout.read().decode()
    writer.wait()
    for line in rest.split("\n")[:-1]:  # what comes after the last newline was not said whole
        rev, *write = line.split()
        world.add(int(rev), *write)


def acknowledged_writes_survive_kill_9():
    diag(f"SEED={SEED}")
    directory = tempfile.mkdtemp(prefix="sonde-store-")
    world = World()
    oldest = told = 0
    try:
        for _ in range(KILLS):
            writer, lines = start(directory)
            try:
                oldest = max(oldest, check_start(world, lines))
                before = world.rev
                kill_at_some_moment(world, writer)
                told += world.rev - before
            finally:
                writer.kill()
        writer, lines = start(directory, "--check")
        assert writer.wait() == 0
        oldest = max(oldest, check_start(world, lines))
    finally:
        shutil.rmtree(directory)
    diag(f"{KILLS} kills, {told} writes acknowledged, newest revision {world.rev}, history from {oldest}")
    assert told > KILLS, "hardly anything was written"


def a_second_writer_is_refused_while_the_first_lives():
    directory = tempfile.mkdtemp(prefix="sonde-store-")
    try:
        writer, _ = start(directory)
        try:
            second = subprocess.run([program("test/store-writer"), directory], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, check=False)
            assert second.returncode == 1, second
            assert f"(pid {writer.pid})" in second.stderr and directory in second.stderr, second.stderr
            assert second.stderr.count("\n") == 1, second.stderr
        finally:
            writer.kill()
            writer.stdout.read()
            writer.wait()
        third = subprocess.run([program("test/store-writer"), directory, "--check"], stdout=subprocess.PIPE, check=False)
        assert third.returncode == 0, "the lock of a process that was killed stays"
    finally:
        shutil.rmtree(directory)


def a_lock_that_outlives_its_engine_for_a_moment_is_waited_for():
    """A lock that a process just begun has for a moment longer than the engine that began it is waited for"""
    directory = tempfile.mkdtemp(prefix="sonde-store-")
    try:
        for _ in range(10):
            code, seconds = held_for_a_moment(directory)
            if code == 0 or seconds < 4:  # it waits for 5 s: where we stood still for as long, it was no moment
                break
        assert code == 0, (code, seconds)
    finally:
        shutil.rmtree(directory)


def held_for_a_moment(directory):
    """How a writer ended that met the lock of a process that has gone, and for how many seconds that was held."""
    path = os.path.join(directory, "lock")
    gone = subprocess.Popen(["true"])
    gone.wait()
    with open(path, "w", encoding="utf-8") as lock:
        print(gone.pid, file=lock, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        writer = subprocess.Popen([program("test/store-writer"), directory, "--check"], stdout=subprocess.DEVNULL)
        wait(lambda: writer.poll() is not None or path in opened(writer.pid), 60, "the lock is looked at")
    held = time.monotonic() - began
    return writer.wait(), held


def opened(pid):
    """The files that a process has open."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


main(acknowledged_writes_survive_kill_9, a_second_writer_is_refused_while_the_first_lives,
     a_lock_that_outlives_its_engine_for_a_moment_is_waited_for)
