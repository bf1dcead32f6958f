"""The classes of the two designs of the status file, as their documents have them: what python/sonde_status.py stands in
for. Each design is in a class of its own, because they use the same names, and asks Frozen for the time."""

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Optional


class Frozen(datetime):
    """A time that stands still until a test moves it."""

    at = datetime(2026, 1, 24, 2, 8, 42, 123456)

    @classmethod
    def now(cls, tz=None):
        return cls.at.replace(tzinfo=timezone.utc).astimezone(tz)

    @classmethod
    def utcnow(cls):
        return cls.at


class Full:
    """Design: Fine-Grained Profiling Status for DGDR, section 2."""

    class ProfilingPhase(Enum):
        INITIALIZING = ("Initializing", 1)
        PREFILL_SWEEP = ("PrefillSweep", 2)
        DECODE_SWEEP = ("DecodeSweep", 3)
        CONFIG_SELECTION = ("ConfigSelection", 4)
        PREFILL_INTERPOLATION = ("PrefillInterpolation", 5)
        DECODE_INTERPOLATION = ("DecodeInterpolation", 6)
        PLANNER_GENERATION = ("PlannerGeneration", 7)
        COMPLETE = ("Complete", 8)
        FAILED = ("Failed", 9)

        def __init__(self, phase_id: str, phase_number: int):
            self.phase_id = phase_id
            self.phase_number = phase_number

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

    class ProfilingStatusReporter:
        """Reports profiling status to a JSON file for the sidecar to pick up."""

        TOTAL_PHASES = 7  # Excluding Complete/Failed

        def __init__(self, output_dir: str, enabled: bool = True):
            self.output_dir = output_dir
            self.status_file = os.path.join(output_dir, "profiling_status.json")
            self.enabled = enabled
            self.started_at = Frozen.now(timezone.utc).isoformat()
            self._current_phase = None

        def update(self, phase, message: str, progress=None, gpu_config=None) -> None:
            """Write current status to the status file."""
            if not self.enabled:
                return

            self._current_phase = phase

            status = {
                "phase": phase.phase_id,
                "phaseNumber": phase.phase_number,
                "totalPhases": self.TOTAL_PHASES,
                "message": message,
                "timestamp": Frozen.now(timezone.utc).isoformat(),
                "startedAt": self.started_at,
            }

            if progress:
                status["progress"] = {
                    "currentStep": progress.current_step,
                    "totalSteps": progress.total_steps,
                    "percentage": progress.percentage,
                }
                if progress.sub_phase:
                    status["progress"]["subPhase"] = progress.sub_phase

            if gpu_config:
                status["gpuConfig"] = {
                    "currentGpus": gpu_config.current_gpus,
                    "parallelMapping": gpu_config.parallel_mapping,
                }

            # Atomic write: write to temp file then rename
            temp_file = self.status_file + ".tmp"
            with open(temp_file, "w") as f:  # pylint: disable=unspecified-encoding
                json.dump(status, f, indent=2)
            os.rename(temp_file, self.status_file)

        def complete(self, message: str = "Profiling completed successfully") -> None:
            """Mark profiling as complete."""
            self.update(Full.ProfilingPhase.COMPLETE, message)

        def fail(self, error: str) -> None:
            """Mark profiling as failed."""
            self.update(Full.ProfilingPhase.FAILED, f"Profiling failed: {error}")


class Short:
    """Design: Fine-Grained Profiling Status for DGDR, the short one, Option A."""

    class ProfilingPhase(Enum):
        INITIALIZING = "Initializing"
        PREFILL_SWEEP = "PrefillSweep"
        DECODE_SWEEP = "DecodeSweep"
        CONFIG_SELECTION = "ConfigSelection"
        PREFILL_INTERPOLATION = "PrefillInterpolation"
        DECODE_INTERPOLATION = "DecodeInterpolation"
        PLANNER_GENERATION = "PlannerGeneration"
        COMPLETE = "Complete"
        FAILED = "Failed"

    class ProfilingStatusReporter:
        def __init__(self, output_dir: str):
            self.output_dir = output_dir
            self.status_file = os.path.join(output_dir, "profiling_status.json")

        def update(self, phase, message: str, current_step: int = None, total_steps: int = None, details: dict = None):
            status = {
                "phase": phase.value,
                "message": message,
                "timestamp": Frozen.utcnow().isoformat() + "Z",
            }
            if current_step is not None and total_steps is not None:
                status["progress"] = {
                    "currentStep": current_step,
                    "totalSteps": total_steps,
                    "percentage": round(current_step / total_steps * 100, 1)
                }
            if details:
                status["details"] = details

            with open(self.status_file, "w") as f:  # pylint: disable=unspecified-encoding
                json.dump(status, f, indent=2)
