#!/usr/bin/python3
"""`sonde-pod run`: however the workload ends, that is recorded, and who holds the FIFO's other end sees it.

Each test has a pod of its own: a directory that `sonde-pod stage` has prepared. Where one waits for another it waits for
an event (a line, a hang-up, a process that is gone); the time limits only keep a broken program from hanging the test.
"""

import array
import contextlib
import fcntl
import gzip
import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import diag, main, program, wait

POD = program("sonde-pod")
HANG = 180  # seconds: longer than anything takes
SIGNALS = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM XCPU VTALRM SYS".split()
with open(POD, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()

# A workload that says "ready", and each signal that it gets; SIGTERM ends it with status 7 the N-th time, 0: never.
TALKER = """
import os, signal, sys
left = [int(sys.argv[1])]
def say(text): os.write(1, (text + "\\n").encode())
def on(number, _):
    say(signal.Signals(number).name)
    if number == signal.SIGTERM:
        left[0] -= 1
        if left[0] == 0: os._exit(7)
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"):
    signal.signal(getattr(signal, name), on)
say("ready %d" % os.getpid())
while True: signal.pause()
"""


class Pod:
    """The directories of a pod, staged."""

    def __enter__(self):
        # Some tests are another user, who may not enter a folder of root's own.
        self.root = tempfile.mkdtemp(prefix="sonde-run-", dir="/tmp" if os.geteuid() == 0 else None)
        self.dir, self.ctl = os.path.join(self.root, "run"), os.path.join(self.root, "sonde", "ctl")
        self.data, self.message = os.path.join(self.root, "data"), os.path.join(self.root, "message")
        self.staged = os.path.join(self.root, "sonde", "sonde-pod")
        os.mkdir(self.data)
        self.stage()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)

    def stage(self, *options):
        subprocess.run([POD, "stage", "--dir", self.dir, "--ctl", self.ctl, "--target", self.staged, *options], check=True,
                       stderr=subprocess.PIPE, timeout=HANG)

    def command(self, *command, pod=POD):
        return [pod, "run", "--ctl", self.ctl, "--termination-log", self.message, "--", *command]

    def run(self, *command, **how):
        """Runs a command to its end; output is captured."""
        return subprocess.run(self.command(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=HANG, check=False, **how)

    def sh(self, script, **how):
        return self.run("sh", "-c", script, **how)

    @contextlib.contextmanager
    def start(self, *command, pod=POD, **how):
        """A command that runs beside the test; it and its child are killed at the end."""
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        with subprocess.Popen(self.command(*command, pod=pod), **how) as process:
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def exit(self):
        """exit.json without its times, which are checked."""
        with open(os.path.join(self.ctl, "exit.json"), encoding="utf-8") as f:
            e = json.load(f)
        assert e.pop("startedAt") <= e.pop("finishedAt")
        return e

    def has(self, name):
        return os.path.lexists(os.path.join(self.ctl, name))

    def put(self, name, data):
        os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
        with open(os.path.join(self.root, name), "wb") as f:
            f.write(data)

    @contextlib.contextmanager
    def alive(self):
        """The relay's end of the FIFO, as a function that waits for the hang-up. Use it before `run` starts."""
        fd = os.open(os.path.join(self.ctl, "alive"), os.O_RDONLY | os.O_NONBLOCK)
        poll = select.poll()
        poll.register(fd, 0)

        def hang_up(seconds=HANG):
            return bool(poll.poll(seconds * 1000))
        try:
            yield hang_up
        finally:
            os.close(fd)


def ready(process):
    """Waits for the talker; returns its pid."""
    line = process.stdout.readline().split()
    assert line[:1] == [b"ready"], line
    return int(line[1])


def ended(pid_fd, seconds=HANG):
    """Waits for the end of a process that is not our child."""
    return bool(select.select([pid_fd], [], [], seconds)[0])


def talker(n):
    return [sys.executable, "-S", "-c", TALKER, str(n)]


# --- how it ended ----------------------------------------------------------------


def an_exit_status_is_passed_on_and_recorded():
    with Pod() as pod:
        for code in (0, 3, 255):
            done = pod.sh(f"echo out; echo err >&2; exit {code}")
            assert done.returncode == code and done.stdout == b"out\n" and done.stderr == b"err\n", done
            e = pod.exit()
            assert e["code"] == code and "signal" not in e and "oom" not in e and "error" not in e, e
            assert sorted(e["tail"].split()) == ["err", "out"], e


def each_signal_that_ends_it_is_recorded():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with Pod() as pod:
        for name in SIGNALS:
            number = getattr(signal, "SIG" + name)
            done = pod.sh(f"kill -{name} $$")
            assert done.returncode == 128 + number, (name, done)
            assert pod.exit() == {"signal": number}, (name, pod.exit())
        number = signal.SIGRTMIN + 3
        assert pod.sh(f"kill -{number} $$").returncode == 128 + number
        assert pod.exit() == {"signal": number}, pod.exit()


def cgroup_parent():
    """The directory in which a memory cgroup can be made, and the names of its files: limit, more limit."""
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        paths = {controllers: path for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in f)}
    for controllers, path in paths.items():
        if "memory" in controllers.split(","):
            return "/sys/fs/cgroup/memory" + path.rstrip("/"), ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
    # Version 2: beside ours, because one that has processes has no children with limits.
    return "/sys/fs/cgroup" + os.path.dirname(paths.get("", "/")).rstrip("/"), ["memory.max", "memory.swap.max"]


@contextlib.contextmanager
def said_how_to_get_one():
    try:
        yield
    except OSError as e:
        raise AssertionError(f"no cgroup with a memory limit can be made ({e}): run as root, or have a cgroup delegated, "
                             "as by `systemd-run --user --scope --property=Delegate=yes make test`") from None


@contextlib.contextmanager
def memory_limit(limit):
    """A cgroup that allows LIMIT bytes. What enters it is a child's `preexec_fn`."""
    parent, files = cgroup_parent()
    path = os.path.join(parent, f"sonde-run-test-{os.getpid()}")
    with said_how_to_get_one():
        os.mkdir(path)
    try:
        with said_how_to_get_one(), open(os.path.join(path, files[0]), "w", encoding="ascii") as f:
            f.write(str(limit))
        with contextlib.suppress(OSError), open(os.path.join(path, files[1]), "w", encoding="ascii") as f:
            f.write(str(limit) if "memsw" in files[1] else "0")

        def enter():
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write("0")
        yield enter
    finally:
        wait(lambda: gone(path), HANG, "the cgroup is empty")


def gone(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def memory_that_it_does_not_get_is_told_from_another_kill():
    eat = [sys.executable, "-S", "-c", "x = b'x' * (1 << 30)"]
    with Pod() as pod, memory_limit(128 << 20) as enter:
        done = pod.run(*eat, preexec_fn=enter)
        assert done.returncode == 137 and pod.exit() == {"signal": 9, "oom": True}, (done, pod.exit())
        # A kill by somebody else in the same group, where the counter is above 0 already.
        done = pod.sh("kill -9 $$", preexec_fn=enter)
        assert done.returncode == 137 and pod.exit() == {"signal": 9}, (done, pod.exit())
        # A child of the workload: the workload itself says how it ended, the kernel why.
        done = pod.run("sh", "-c", '"$@" || exit 5', "sh", *eat, preexec_fn=enter)
        assert done.returncode == 5 and pod.exit()["code"] == 5 and pod.exit()["oom"] is True, (done, pod.exit())


def sigkill_of_run_hangs_the_fifo_up_and_takes_the_workload_along():
    times = []
    for _ in range(5):
        with Pod() as pod, pod.alive() as hang_up, pod.start(*talker(1)) as run:
            child = os.pidfd_open(ready(run))
            assert not hang_up(0)
            began = time.monotonic()
            run.kill()
            assert hang_up(), "the FIFO is still held"
            times.append((time.monotonic() - began) * 1000)
            assert not pod.has("exit.json"), "somebody wrote how it ended"
            assert ended(child), "the workload goes on"
            os.close(child)
    diag(f"a hang-up came {min(times):.1f} to {max(times):.1f} ms after SIGKILL")


def the_end_is_recorded_before_the_fifo_is_let_go():
    for script in ("exit 3", "kill -9 $$", "exec /nowhere/at/all"):
        with Pod() as pod, pod.alive() as hang_up, pod.start("sh", "-c", script):
            assert hang_up()
            assert pod.exit()


def a_command_that_cannot_be_started_is_explained():
    with Pod() as pod:
        pod.put("bin/plain", b"#!/bin/sh\n")
        pod.put("bin/orphan", b"#!/nowhere/interpreter\n")
        pod.put("bin/garbage", b"\x01\x02\x03\x04")
        for name in ("orphan", "garbage"):
            os.chmod(os.path.join(pod.root, "bin", name), 0o755)
        at = os.path.join(pod.root, "bin")
        for name, code, words in (("no-such-command", 127, "not found in PATH"), (f"{at}/missing", 127, "not found"),
                                  (f"{at}/plain/x", 127, "not found"), (f"{at}/plain", 126, "not executable for user"),
                                  (at, 126, "not executable for user"), (f"{at}/orphan", 127, "interpreter"),
                                  ("orphan", 127, "interpreter"), ("plain", 126, "not executable"),
                                  (f"{at}/garbage", 126, "not a program for this machine"), ("", 127, "not found")):
            done = pod.run(name, env={**os.environ, "PATH": f"/nowhere:{at}"})
            assert done.returncode == code, (name, done)
            e = pod.exit()
            assert words in e["error"] and f"'{name}'" in e["error"] and "code" not in e and "signal" not in e, (name, e)
            assert words.encode() in done.stderr and done.stderr.count(b"\n") == 1, (name, done)


def the_termination_message_is_short_and_leaves_the_workload_s_own():
    with Pod() as pod:
        def message():
            with open(pod.message, "rb") as f:
                return f.read()
        pod.sh("seq 5000; exit 4")
        e = json.loads(message())
        assert len(message()) <= 4096 and e["code"] == 4 and e["tail"].endswith("\n4999\n5000\n"), message()
        pod.sh("exit 0")
        assert json.loads(message())["code"] == 0, "the last one's is replaced"
        pod.sh(f"echo 'my own words' > {pod.message}; exit 1")
        assert message() == b"my own words\n", message()


# --- output ----------------------------------------------------------------------


def ten_megabytes_in_both_streams_arrive_and_the_tail_is_whole():
    # Lines of 99 bytes with characters of one to four bytes, so that no size of a piece fits them.
    write = ("import sys, threading\n"
             "def w(f, c):\n"
             "    for i in range(100000): f.write(('%06d ' % i + c).encode() + b'\\n')\n"
             "    f.flush()\n"
             "t = threading.Thread(target=w, args=(sys.stderr.buffer, '\\U0001f388' * 22 + 'xyz'))\n"
             "t.start(); w(sys.stdout.buffer, '\\u00e4' * 45 + 'x'); t.join()\n"
             "sys.stdout.buffer.write(('\\u20ac' * 2000).encode()); sys.stdout.flush()\n")
    with Pod() as pod:
        done = pod.run(sys.executable, "-S", "-c", write)
        assert done.returncode == 0, done.stderr[-500:]
        assert done.stdout == b"".join(b"%06d %sx\n" % (i, "ä".encode() * 45) for i in range(100000)) + "€".encode() * 2000
        assert done.stderr == b"".join(b"%06d %sxyz\n" % (i, "\U0001f388".encode() * 22) for i in range(100000))
        tail = pod.exit()["tail"]
        assert tail == "€" * 1365, tail[:100]  # 4095 bytes: the cut fell inside a character


def two_streams_into_one_file_stay_in_order():
    with Pod() as pod, tempfile.TemporaryFile() as f:
        expected = b"".join(b"out %d\nerr %d\n" % (i, i) for i in range(500))
        script = "i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"
        done = subprocess.run(pod.command("sh", "-c", script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG,
                              check=False)
        assert done.stdout == expected, done.stdout[:300]
        subprocess.run(pod.command("sh", "-c", script), stdout=f, stderr=f, timeout=HANG, check=False)
        f.seek(0)
        assert f.read() == expected


def full(process):
    """Waits until the pipe to us holds all that it can."""
    size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
    wait(lambda: in_pipe(process.stdout) == size, HANG, "the pipe is full", every=0.01)


def in_pipe(pipe):
    n = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, n)
    return n[0]


def a_slow_reader_slows_the_workload_and_loses_nothing():
    # More than all pipes on the way hold, a page at a time; told to end while nobody reads, it says so beside them.
    write = ("import os, signal, sys\n"
             "def on(*_): open(sys.argv[1], 'w').write('heard')\n"
             "signal.signal(signal.SIGTERM, on)\n"
             "for i in range(0, 65536, 256): os.write(1, b''.join(b'%015d\\n' % j for j in range(i, i + 256)))\n"
             "os.write(2, b'done\\n')\n")
    for pipe in ("own", "another user's"):
        with Pod() as pod:
            heard, how = os.path.join(pod.root, "heard"), {}
            os.mkfifo(heard)
            if pipe != "own" and os.geteuid() == 0:
                # Not to be opened once more by who may not: the case of a container whose runtime made the pipe as root.
                for path in (pod.root, pod.ctl, os.path.join(pod.ctl, "alive"), heard):
                    os.chmod(path, 0o777)
                how = {"preexec_fn": lambda: (os.setgid(1000), os.setuid(1000)), "pod": pod.staged}
            with pod.start(sys.executable, "-S", "-c", write, heard, **how) as run:
                full(run)
                run.send_signal(signal.SIGTERM)
                with open(heard, "rb") as f:
                    assert f.read() == b"heard", "the signal did not get through"
                assert not pod.has("exit.json") and run.poll() is None
                out = run.stdout.read()
                assert out == b"".join(b"%015d\n" % i for i in range(65536)), len(out)
                assert run.stderr.read() == b"done\n" and run.wait(HANG) == 0
                assert "065535\n" in pod.exit()["tail"]


def an_end_is_recorded_though_nobody_reads_and_what_is_left_still_comes():
    # Our pipe is full, and the rest is in the workload's pipe when it ends.
    script = "head -c 120000 /dev/zero | tr '\\0' x; echo end; exit 5"
    for told_to_end in (False, True):
        with Pod() as pod, pod.start("sh", "-c", script) as run:
            wait(lambda: pod.has("exit.json"), HANG)
            assert pod.exit() == {"code": 5, "tail": "x" * 4092 + "end\n"}
            assert run.poll() is None, "it did not wait for its reader"
            if told_to_end:
                run.send_signal(signal.SIGTERM)
            else:
                assert run.stdout.read() == b"x" * 120000 + b"end\n"
            assert run.wait(HANG) == 5


def a_closed_output_does_not_stop_the_workload():
    with Pod() as pod:
        for how in ("pipe", "none"):
            mark = os.path.join(pod.root, how)
            script = f"seq 200000; seq 200000 >&2; echo done > {mark}; exit 6"
            if how == "pipe":
                r, w = os.pipe()
                os.close(r)
                done = subprocess.run(pod.command("sh", "-c", script), stdout=w, stderr=w, timeout=HANG, check=False)
                os.close(w)
            else:
                close = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
                done = subprocess.run(close + pod.command("sh", "-c", script), timeout=HANG, check=False)
            assert done.returncode == 6 and os.path.exists(mark), (how, done)
            assert pod.exit()["code"] == 6 and pod.exit()["tail"].endswith("\n200000\n"), how


def a_grandchild_that_keeps_the_output_open_is_not_waited_for():
    for grandchild in ("sleep 1000", "yes"):
        with Pod() as pod:
            pid = os.path.join(pod.root, "pid")
            with pod.start("sh", "-c", f"{grandchild} & echo $! > {pid}; echo last words >&2; exit 4") as run:
                # `yes` fills the pipe that we read on the side; what it writes after the end is nobody's.
                out, errors = run.communicate(timeout=HANG)
                assert run.returncode == 4 and errors == b"last words\n", (run.returncode, errors, out[:100])
                assert pod.exit()["code"] == 4
            with open(pid, encoding="ascii") as f:
                grand = int(f.read())
            if grandchild != "yes":  # that one met a closed pipe
                os.kill(grand, 0)
                os.kill(grand, signal.SIGKILL)


# --- signals and processes -------------------------------------------------------


def signals_reach_the_workload_every_time():
    with Pod() as pod, pod.start(*talker(2)) as run:
        ready(run)
        for name in ("SIGUSR1", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGWINCH", "SIGTERM", "SIGUSR1", "SIGTERM"):
            run.send_signal(getattr(signal, name))
            assert run.stdout.readline().decode().strip() == name
        assert run.wait(HANG) == 7
        assert pod.exit()["code"] == 7


def a_workload_that_ignores_sigterm_is_waited_for():
    ignorant = TALKER.replace('"SIGTERM", ', "").replace("left = ", "signal.signal(signal.SIGTERM, signal.SIG_IGN); left = ")
    with Pod() as pod, pod.start(sys.executable, "-S", "-c", ignorant, "0") as run:
        child = ready(run)
        for _ in range(2):
            run.send_signal(signal.SIGTERM)
            run.send_signal(signal.SIGUSR1)  # comes after it
            assert run.stdout.readline() == b"SIGUSR1\n"
        assert run.poll() is None and not pod.has("exit.json")
        os.kill(child, signal.SIGKILL)
        assert run.wait(HANG) == 137 and pod.exit()["signal"] == 9


def the_workload_starts_as_if_nobody_were_there():
    def disturb():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM])
    with Pod() as pod:
        # sed and ls look at themselves; the fourth descriptor is the directory that ls reads
        done = pod.sh("sed -n 's/^Sig\\(Blk\\|Ign\\)://p' /proc/self/status; ls /proc/self/fd", preexec_fn=disturb)
        assert done.stdout.split() == [b"0" * 16, b"0" * 16, b"0", b"1", b"2", b"3"], done
        done = pod.run("env", env={"A": "1", "PATH": os.environ["PATH"]})
        assert sorted(done.stdout.split(b"\n")) == sorted([b"", b"A=1", b"PATH=" + os.environ["PATH"].encode()]), done
        done = pod.run("sh", "-c", 'printf "<%s>" "$@"', "sh", "--", "a b", "", "-x", "--help")
        assert done.stdout == b"<--><a b><><-x><--help>", done


def a_workload_that_signals_its_group_does_not_meet_run():
    with Pod() as pod:
        done = pod.sh("trap 'exit 8' TERM; kill 0; exit 1")
        assert done.returncode == 8, done
        done = pod.sh("kill -9 0")
        assert done.returncode == 137 and pod.exit() == {"signal": 9}, done


class Terminal:
    """A command in the foreground of a terminal of its own."""

    def __init__(self, argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(argv[0], argv)

    def line(self):
        """The next line that is shown, without the echo of ctrl-C."""
        text = b""
        while not text.endswith(b"\n"):
            assert select.select([self.fd], [], [], HANG)[0], text
            text += os.read(self.fd, 1)
        return text.decode().strip().replace("^C", "")

    def type(self, text):
        os.write(self.fd, text)

    def wait(self):
        pid, self.pid = self.pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        os.close(self.fd)


def at_a_terminal_ctrl_c_arrives_once_and_what_is_typed_is_read():
    with Pod() as pod, Terminal(pod.command(*talker(1))) as terminal:
        assert terminal.line().startswith("ready")
        for _ in range(30):  # a second one of the same would show sooner or later
            terminal.type(b"\x03")
            assert terminal.line() == "SIGINT"
        os.kill(terminal.pid, signal.SIGINT)  # not the terminal's: passed on
        assert terminal.line() == "SIGINT"
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.line() == "SIGTERM"
        assert terminal.wait() == 7
    with Pod() as pod, Terminal(pod.command("sh", "-c", "echo ready; read x; echo got $x")) as terminal:
        assert terminal.line() == "ready"
        terminal.type(b"words\n")
        assert (terminal.line(), terminal.line()) == ("words", "got words")
        assert terminal.wait() == 0


def orphans_are_reaped():
    # A process whose parent ends at once; when it has ended too, only `run` can take it off the table.
    script = "(sh -c 'echo $$; read x' <&3 & ) 3<&0; cat; exit 3"
    for namespace in ([], ["unshare", "--pid", "--fork", "--kill-child"] + ([] if os.geteuid() == 0 else ["-U", "-r"])):
        with Pod() as pod:
            r, w = os.pipe()
            with subprocess.Popen(namespace + pod.command("sh", "-c", script), stdin=r, stdout=subprocess.PIPE) as run:
                os.close(r)
                inside = int(run.stdout.readline())
                top = run.pid if not namespace else children(run.pid)[0]
                orphans = wait(lambda: [p for p in children(top) if command(p) == ["sh", "-c", "echo $$; read x"]], HANG)
                assert namespace or orphans == [inside], (orphans, inside)
                orphan = os.pidfd_open(orphans[0])
                os.write(w, b"x\n")  # one of the two readers gets it
                os.close(w)          # and both the end
                assert ended(orphan)
                run.stdout.read()
                assert run.wait(HANG) == 3
                os.close(orphan)
                assert pod.exit()["code"] == 3


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            return f.read().split("\0")[:-1]
    except OSError:
        return None


def no_zombie_stays_while_the_workload_runs():
    with Pod() as pod, pod.start("sh", "-c", "(sh -c 'exit 0' & ); echo ready $$; exec sleep 1000") as run:
        child = ready(run)
        wait(lambda: children(run.pid) == [child], HANG, "only the workload is left")


def at_rest_it_has_nothing_to_wake_up_for():
    with Pod() as pod, pod.start(*talker(1)) as run:
        ready(run)
        armed = []
        for fd in os.listdir(f"/proc/{run.pid}/fdinfo"):
            with open(f"/proc/{run.pid}/fdinfo/{fd}", encoding="ascii") as f:
                armed += [line for line in f if line.startswith("it_value") and line.split(":")[1].strip() != "(0, 0)"]
        assert not armed, armed
        with open(f"/proc/{run.pid}/smaps_rollup", encoding="ascii") as f:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in f if line.endswith("kB\n")}
        diag(f"anonymous memory {sizes['Anonymous']} kB, resident {sizes['Rss']} kB")
        assert SANITIZED or sizes["Anonymous"] < 1024, sizes


# --- the pod's directories -------------------------------------------------------


def who_comes_late_sees_by_the_lock_whether_run_lives():
    def locked(pod):
        with open(os.path.join(pod.ctl, "started"), "rb") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                return True
    with Pod() as pod:
        with pod.start(*talker(1)) as run:
            ready(run)
            with open(os.path.join(pod.ctl, "started"), encoding="utf-8") as f:
                started = json.load(f)
            assert started["pid"] == run.pid and started["startedAt"].endswith("Z"), started
            assert locked(pod)
            # A second one in the same pod leaves the first one's files alone.
            other = pod.sh("echo other; exit 3")
            assert other.returncode == 3 and other.stdout == b"other\n" and b"Another run" in other.stderr, other
            assert not pod.has("exit.json") and locked(pod)
            run.kill()
            run.wait()
        wait(lambda: not locked(pod), HANG)
        assert pod.sh("exit 4").returncode == 4 and pod.exit()["code"] == 4


def an_old_end_is_gone_before_the_new_workload_starts():
    with Pod() as pod:
        pod.sh("exit 3")
        assert pod.has("exit.json")
        done = pod.sh(f"test ! -e {pod.ctl}/exit.json && test -e {pod.ctl}/started")
        assert done.returncode == 0, done
        assert sorted(os.listdir(pod.ctl)) == ["alive", "exit.json", "started"]


def without_a_control_directory_it_runs_all_the_same():
    with Pod() as pod:
        for what, words in (("alive", b"No FIFO"), ("", b"No control directory")):
            path = os.path.join(pod.ctl, what)
            shutil.rmtree(path) if not what else os.unlink(path)
            done = pod.sh("echo out; exit 3")
            assert done.returncode == 3 and done.stdout == b"out\n", done
            assert words in done.stderr and done.stderr.count(b"\n") == 1, done
        assert not os.path.exists(pod.ctl)


def a_reused_volume_fools_nobody():
    with Pod() as pod:
        pod.put("run/profiling_status.json", b'{"phase": "Complete"}')
        pod.put("run/result.json", b"{}")
        os.symlink("/etc", os.path.join(pod.dir, "link"))
        pod.put("sonde/ctl/exit.json", b'{"code":0}')
        pod.stage()
        assert sorted(os.listdir(pod.dir)) == [".previous", "artifacts"], os.listdir(pod.dir)
        assert sorted(os.listdir(os.path.join(pod.dir, ".previous"))) == ["link", "profiling_status.json", "result.json"]
        assert os.path.islink(os.path.join(pod.dir, ".previous", "link"))
        assert not pod.has("exit.json")


def a_checkpoint_is_laid_down_for_the_same_spec_alone():
    with Pod() as pod:
        at = os.path.join(pod.dir, "checkpoint.json")
        pod.put("data/specHash", b"abc")
        for name, text in (("checkpoint.json", b'{"done": 1}'), ("checkpoint.json.gz", gzip.compress(b'{"done": 1}'))):
            pod.put("data/" + name, text)
            for spec, laid_down in ((["--spec-hash", "abc"], True), (["--spec-hash", "abd"], False), ([], False)):
                pod.stage("--checkpoint", pod.data, *spec)
                assert os.path.exists(at) == laid_down, (name, spec)
                assert not laid_down or open(at, "rb").read() == b'{"done": 1}'
            os.unlink(os.path.join(pod.data, name))
        pod.stage("--checkpoint", pod.data, "--spec-hash", "abc")
        assert not os.path.exists(at)


def the_staged_program_runs_the_workload():
    with Pod() as pod, pod.start("sh", "-c", "echo staged", pod=pod.staged) as run:
        assert os.stat(pod.staged).st_mode & 0o7777 == 0o755
        assert run.communicate(timeout=HANG)[0] == b"staged\n" and run.returncode == 0


def wrong_usage_is_one_sentence():
    for arguments in (["run"], ["run", "--"], ["run", "--nonsense", "--", "true"], ["stage", "extra"], ["stage", "--dir"]):
        done = subprocess.run([POD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG, check=False)
        assert done.returncode == 2 and not done.stdout and done.stderr.count(b"\n") == 1, (arguments, done)
    done = subprocess.run([POD, "stage", "--dir", "/proc/nowhere"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG,
                          check=False)
    assert done.returncode == 1 and b"/proc/nowhere" in done.stderr and done.stderr.count(b"\n") == 1, done


main(an_exit_status_is_passed_on_and_recorded, each_signal_that_ends_it_is_recorded,
     memory_that_it_does_not_get_is_told_from_another_kill,
     sigkill_of_run_hangs_the_fifo_up_and_takes_the_workload_along, the_end_is_recorded_before_the_fifo_is_let_go,
     a_command_that_cannot_be_started_is_explained, the_termination_message_is_short_and_leaves_the_workload_s_own,
     ten_megabytes_in_both_streams_arrive_and_the_tail_is_whole, two_streams_into_one_file_stay_in_order,
     a_slow_reader_slows_the_workload_and_loses_nothing, an_end_is_recorded_though_nobody_reads_and_what_is_left_still_comes,
     a_closed_output_does_not_stop_the_workload,
     a_grandchild_that_keeps_the_output_open_is_not_waited_for, signals_reach_the_workload_every_time,
     a_workload_that_ignores_sigterm_is_waited_for, the_workload_starts_as_if_nobody_were_there,
     a_workload_that_signals_its_group_does_not_meet_run,
     at_a_terminal_ctrl_c_arrives_once_and_what_is_typed_is_read, orphans_are_reaped,
     no_zombie_stays_while_the_workload_runs, at_rest_it_has_nothing_to_wake_up_for,
     who_comes_late_sees_by_the_lock_whether_run_lives, an_old_end_is_gone_before_the_new_workload_starts,
     without_a_control_directory_it_runs_all_the_same, a_reused_volume_fools_nobody,
     a_checkpoint_is_laid_down_for_the_same_spec_alone, the_staged_program_runs_the_workload, wrong_usage_is_one_sentence)
