"""sonde_status - tells Sonde where a profiler is. One file, the standard library, Python 3.8 or newer.

    from sonde_status import GpuConfig, ProfilingPhase, ProfilingProgress, ProfilingStatusReporter

    status = ProfilingStatusReporter(args.output_dir)
    status.update(ProfilingPhase.PREFILL_SWEEP, "Profiling prefill with 4 GPUs",
                  progress=ProfilingProgress(2, 12, sub_phase="Benchmarking"), gpu_config=GpuConfig(4, "TP=4"))
    status.complete()                   # or status.fail(str(error))

A profiler with phases of its own declares them, with what each costs in any unit, and names them by plain strings:

    status = ProfilingStatusReporter("/data", plan=[{"phase": "Warmup", "weight": 60},
                                                    {"phase": "Measure", "steps": 20, "weight": 600}])
    status.update("Measure", "Batch size 16", current_step=3, total_steps=20, details={"batch": 16})

It is a drop-in for the classes of both designs of the status file: names, arguments and what is written are theirs, and
everything of ours is additive (`sequence`, `plan`, `error`). `phase.value` is the phase's id ("PrefillSweep"), as in the
short design; the full design's pair is `(phase.phase_id, phase.phase_number)`, and ProfilingPhase(...) takes either.

No method ever raises into the profiler: what cannot be written (a full disk, a directory that has gone, details that are
not JSON) is logged once, by the logger "sonde_status", and the profiler goes on. A part that readers would refuse is left
out and the rest is written. Texts are cut in bytes of UTF-8, between two characters: messages at 1024, errors at 500,
sub-phases and mappings at 256.

The file is replaced as a whole: temporary file, fsync, rename. Two writers in one directory take turns, `sonde-pod report`
included; the sequence goes on from what is in the file.
"""

import json
import logging
import math
import operator
import os
import stat
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Dict, List, Optional, Tuple, Union

try:
    import fcntl
except ImportError:  # no such locks here: one writer at a time
    fcntl = None  # type: ignore[assignment]

__all__ = ["GpuConfig", "ProfilingPhase", "ProfilingProgress", "ProfilingStatusReporter"]

STATUS_FILE = "profiling_status.json"
FILE_MAX = 64 * 1024
MESSAGE_MAX = 1024
SUB_PHASE_MAX = 256
MAPPING_MAX = 256
BEST_MAX = 256
ERROR_MAX = 500
PHASE_NAME_MAX = 63
PHASES_MAX = 32
NUMBER_MAX = 10**9
SEQUENCE_MAX = 2**53
DETAILS_LEVELS = 15  # and one for the status itself
LOCK_SECONDS = 2.0
LOCK_SECONDS_LATER = 0.05  # after the first complaint

_log = logging.getLogger("sonde_status")


class ProfilingPhase(Enum):
    # phases: begin (written by scripts/phases from src/run/phases.def)
    INITIALIZING = ("Initializing", 1)
    PREFILL_SWEEP = ("PrefillSweep", 2)
    DECODE_SWEEP = ("DecodeSweep", 3)
    CONFIG_SELECTION = ("ConfigSelection", 4)
    PREFILL_INTERPOLATION = ("PrefillInterpolation", 5)
    DECODE_INTERPOLATION = ("DecodeInterpolation", 6)
    PLANNER_GENERATION = ("PlannerGeneration", 7)
    COMPLETE = ("Complete", 8)
    FAILED = ("Failed", 9)
    # phases: end

    def __new__(cls, phase_id: str, phase_number: int) -> "ProfilingPhase":
        member = object.__new__(cls)
        member._value_ = phase_id
        return member

    def __init__(self, phase_id: str, phase_number: int):
        self.phase_id = phase_id
        self.phase_number = phase_number

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        """The full design's value is the pair of id and number."""
        for member in cls:
            if (member.phase_id, member.phase_number) == value:
                return member
        return None


_PHASES = {phase.phase_id: phase.phase_number for phase in ProfilingPhase}
_ENDS = (ProfilingPhase.COMPLETE.phase_id, ProfilingPhase.FAILED.phase_id)


@dataclass
class ProfilingProgress:
    current_step: int
    total_steps: int
    sub_phase: Optional[str] = None

    @property
    def percentage(self) -> float:
        if self.total_steps == 0:
            return 0.0
        return round(self.current_step / self.total_steps * 100, 1)


@dataclass
class GpuConfig:
    current_gpus: int
    parallel_mapping: str


PhaseLike = Union[ProfilingPhase, str]
PlanLike = List[Union[PhaseLike, Dict[str, Any]]]


class ProfilingStatusReporter:
    """Reports profiling status to a JSON file in `output_dir`, for Sonde's relay to pick up."""

    TOTAL_PHASES = 7  # Excluding Complete/Failed

    def __init__(self, output_dir: str, enabled: bool = True, plan: Optional[PlanLike] = None):
        self.output_dir = output_dir
        self.enabled = enabled
        self.started_at = datetime.now(timezone.utc).isoformat()
        self.status_file = ""
        self._current_phase: Optional[PhaseLike] = None
        self._complained = False
        self._sequence = 0
        self._plan: Optional[List[Dict[str, Any]]] = None
        try:
            self.status_file = os.path.join(output_dir, STATUS_FILE)
            self._plan = _checked_plan(plan) if plan else None
        except Exception as e:  # pylint: disable=broad-except
            self._complain("the plan is left out" if self.status_file else "there is no directory", e)

    def update(
        self,
        phase: PhaseLike,
        message: str,
        progress: Optional[ProfilingProgress] = None,
        gpu_config: Optional[GpuConfig] = None,
        details: Optional[Dict[str, Any]] = None,
        *,
        current_step: Optional[int] = None,
        total_steps: Optional[int] = None,
        best: Optional[str] = None,
    ) -> None:
        """Write current status to the status file.

        The short design's order of arguments works too: update(phase, message, current_step, total_steps, details).
        `best` tells people the best of what was measured so far, such as "TP=4  ITL 11.8 ms".
        """
        self._update(phase, message, progress, gpu_config, details, current_step, total_steps, None, best)

    def complete(self, message: str = "Profiling completed successfully") -> None:
        """Mark profiling as complete."""
        self.update(ProfilingPhase.COMPLETE, message)

    def fail(self, error: str) -> None:
        """Mark profiling as failed."""
        try:
            text = _text(error, ERROR_MAX)
        except Exception as e:  # pylint: disable=broad-except
            text = type(error).__name__
            self._complain("the error cannot be printed", e)
        self._update(ProfilingPhase.FAILED, f"Profiling failed: {text}", None, None, None, None, None, text)

    # --- what follows never raises, except through _status() and _write() ---

    def _update(self, phase, message, progress, gpu_config, details, current_step, total_steps, error, best=None):
        if not self.enabled or not self.status_file:  # without a name it would write where the profiler happens to be
            return
        self._current_phase = phase
        try:
            # The short design's third and fourth argument.
            if _is_number(progress):
                current_step, progress = progress, None
            if _is_number(gpu_config):
                total_steps, gpu_config = gpu_config, None
            if progress is None and current_step is not None and total_steps is not None:
                progress = ProfilingProgress(current_step, total_steps)
            self._report(phase, message, progress, gpu_config, details, error, best)
        except Exception as e:  # pylint: disable=broad-except
            self._complain("the status file is not written", e)

    def _complain(self, what: str, why: BaseException) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("%s: %s (%s: %s); the profiler goes on", self.status_file or STATUS_FILE, what,
                         type(why).__name__, why)

    def _report(self, phase, message, progress, gpu_config, details, error, best):
        """Writes one status, in turn with other writers."""
        phase_id, own_number = _phase_of(phase)
        parts = self._parts(progress, gpu_config, best, details)
        limit = LOCK_SECONDS_LATER if self._complained else LOCK_SECONDS
        with _Turn(os.path.dirname(self.status_file) or ".", limit):
            before = _read(self.status_file)
            plan = self._plan or _plan_of(before)
            number, total = self._place(phase_id, own_number, plan)
            sequence = min(max(self._sequence, _sequence_of(before)) + 1, SEQUENCE_MAX)
            status = {
                "phase": phase_id,
                "phaseNumber": number,
                "totalPhases": total,
                "message": None if message is None else _text(message, MESSAGE_MAX),
                "timestamp": datetime.now(timezone.utc).isoformat(),
                "startedAt": self.started_at,
                **parts,
                "sequence": sequence,
                "plan": plan,
                "error": error,
            }
            for name in ("phaseNumber", "totalPhases", "plan", "error"):
                if status[name] is None:
                    del status[name]
            self._write(status)
            self._sequence = sequence

    def _place(self, phase_id: str, own: Optional[int], plan) -> Tuple[Optional[int], Optional[int]]:
        """Number of the phase and how many there are; None: not known."""
        if plan:
            names = [entry["phase"] for entry in plan]
            for place, end in enumerate(_ENDS, 1):
                if phase_id == end:
                    return len(names) + place, len(names)
            return (names.index(phase_id) + 1 if phase_id in names else None), len(names)
        if own is None:
            own = _PHASES.get(phase_id)
        return own, None if own is None else self.TOTAL_PHASES

    def _parts(self, progress, gpu_config, best, details) -> Dict[str, Any]:
        """The optional members; one that cannot be written, or that every reader would refuse, is left out."""
        parts = {}
        for name, value, make in (("progress", progress, _progress), ("gpuConfig", gpu_config, _gpu_config),
                                  ("bestSoFar", best, _best), ("details", details, _details)):
            if value is None or (name == "details" and not value):
                continue
            try:
                made = make(value)
                json.dumps(made, allow_nan=False)
                parts[name] = made
            except Exception as e:  # pylint: disable=broad-except
                self._complain(f"{name} is left out", e)
        return parts

    def _write(self, status: Dict[str, Any]) -> None:
        """Atomic: a temporary file, fsync, rename in the same directory."""
        text = json.dumps(status, indent=2, allow_nan=False)
        if len(text) > FILE_MAX and "details" in status:
            self._complain("details is left out", ValueError(f"the file would be larger than {FILE_MAX} bytes"))
            del status["details"]
            text = json.dumps(status, indent=2, allow_nan=False)
        temp_file = self.status_file + ".tmp"
        _remove(temp_file)  # a killed writer's
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
            with open(os.open(temp_file, flags, 0o666), "w", encoding="ascii") as f:
                f.write(text)
                f.flush()
                os.fsync(f.fileno())
            os.replace(temp_file, self.status_file)
        except BaseException:
            _remove(temp_file)
            raise


# --- values ---------------------------------------------------------------------


def _text(value: Any, limit: int) -> str:
    """VALUE as text of at most LIMIT bytes in UTF-8, cut between two characters."""
    encoded = str(value).encode("utf-8", "replace")
    return encoded[:limit].decode("utf-8", "ignore")


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") or isinstance(value, float)


def _number(value: Any) -> Union[int, float]:
    """A whole number that readers take; numpy's and the like become Python's."""
    number = value if isinstance(value, float) else int(operator.index(value))
    if not 0 <= number <= NUMBER_MAX or number != int(number):
        raise ValueError(f"{number} is not a whole number from 0 to 10^9")
    return number


def _progress(progress: Any) -> Dict[str, Any]:
    made = {
        "currentStep": _number(progress.current_step),
        "totalSteps": _number(progress.total_steps),
        "percentage": float(progress.percentage),
    }
    if progress.sub_phase:
        made["subPhase"] = _text(progress.sub_phase, SUB_PHASE_MAX)
    return made


def _gpu_config(gpu_config: Any) -> Dict[str, Any]:
    mapping = gpu_config.parallel_mapping
    return {
        "currentGpus": _number(gpu_config.current_gpus),
        "parallelMapping": None if mapping is None else _text(mapping, MAPPING_MAX),
    }


def _best(best: Any) -> str:
    return _text(best, BEST_MAX)


def _levels(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_levels, value.values()), default=0)
    if isinstance(value, (list, tuple)):
        return 1 + max(map(_levels, value), default=0)
    return 0


def _details(details: Any) -> Any:
    # Not circular, so that the levels can be counted; and no halves of characters, which are not UTF-8.
    json.dumps(details, allow_nan=False, ensure_ascii=False).encode("utf-8")
    if _levels(details) > DETAILS_LEVELS:
        raise ValueError(f"more than {DETAILS_LEVELS} levels deep")
    return details


def _name(name: Any) -> str:
    """NAME, when it can be a phase's."""
    if not isinstance(name, str):
        raise TypeError(f"{type(name).__name__} is not a phase")
    if not 1 <= len(name.encode("utf-8", "replace")) <= PHASE_NAME_MAX:
        raise ValueError(f"the phase's name has not 1 to {PHASE_NAME_MAX} bytes")
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in name):
        raise ValueError("the phase's name has a control character")
    return name


def _phase_of(phase: Any) -> Tuple[str, Optional[int]]:
    """Id and number of a phase of ours, of either design's class, of any Enum of strings, or of a plain string."""
    if hasattr(phase, "phase_id"):
        number = getattr(phase, "phase_number", None)
        return _name(phase.phase_id), _number(number) if _is_number(number) else None
    return _name(phase.value if isinstance(phase, Enum) else phase), None


def _checked_plan(plan: Any) -> List[Dict[str, Any]]:
    """PLAN as it goes into the file; ValueError, TypeError when a reader would refuse it."""
    made: List[Dict[str, Any]] = []
    for entry in plan:
        entry = entry if isinstance(entry, dict) else {"phase": entry}
        one: Dict[str, Any] = {"phase": _phase_of(entry["phase"])[0]}
        if entry.get("steps") is not None:
            one["steps"] = _number(entry["steps"])
        if entry.get("weight") is not None:
            weight = entry["weight"]
            one["weight"] = weight = weight if isinstance(weight, int) else float(weight)
            if not math.isfinite(weight) or not 0 < weight <= NUMBER_MAX:
                raise ValueError(f"the weight of {one['phase']} is not above 0, at most 10^9")
        if one["phase"] in (other["phase"] for other in made):
            raise ValueError(f"{one['phase']} is in the plan twice")
        if one["phase"] not in _ENDS:
            made.append(one)
    if len(made) > PHASES_MAX:
        raise ValueError(f"the plan has more than {PHASES_MAX} phases")
    return made


# --- files ----------------------------------------------------------------------


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _read(path: str) -> Dict[str, Any]:
    """What is in the status file; {} when there is none or nothing that can be read. Never waits for a FIFO."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return {}
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
        with open(fd, "rb") as f:
            if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
                return {}
            text = f.read(FILE_MAX + 1)
        status = json.loads(text.decode("utf-8")) if len(text) <= FILE_MAX else {}
        return status if isinstance(status, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _sequence_of(status: Dict[str, Any]) -> int:
    sequence = status.get("sequence")
    return sequence if type(sequence) is int and 0 <= sequence <= SEQUENCE_MAX else 0  # pylint: disable=C0123


def _plan_of(status: Dict[str, Any]) -> Optional[List[Dict[str, Any]]]:
    """The plan that somebody else declared for this run; what follows the end of one is another run."""
    if not status.get("plan") or status.get("phase") in _ENDS:
        return None
    try:
        return _checked_plan(status["plan"]) or None
    except (KeyError, TypeError, ValueError):
        return None


class _Turn:
    """One writer at a time: a lock on the directory, waited for at most SECONDS. Where there are no locks, none."""

    def __init__(self, directory: str, seconds: float):
        self._directory, self._seconds, self._fd = directory, seconds, -1

    def __enter__(self):
        if fcntl is None:
            return
        self._fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._lock()
        except BaseException:
            self._close()
            raise

    def _lock(self):
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError("another writer does not let go of the directory") from None
                time.sleep(0.01)
            except OSError:
                return  # a file system without locks

    def _close(self):
        fd, self._fd = self._fd, -1
        os.close(fd)

    def __exit__(self, *_):
        if self._fd < 0:
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # closing would not do when somebody forked meanwhile
        except OSError:
            pass
        self._close()
