"""The machine that is lent: its card, and the time that is left."""

import time

import torch

from batchwright.core.errors import InputError
from trainers.common.job import training_device

SPARE = 0.06
"""Share of the time that is kept for what takes longer than measured."""
END = 8.0
"""Seconds kept for the end of the process."""


def name_card(*, small: bool) -> str:
    """The name of the GPU, or of what stands in for one in a ``small`` run.

    Raises:
        InputError: there is no GPU, and the run is not small.
    """
    if training_device() == "cuda":
        return torch.cuda.get_device_name()
    if not small:
        raise InputError("there is no GPU; add --small to see on the CPU that everything runs")
    return "CPU"


class Clock:
    """Counts from its beginning to ``seconds`` after it."""

    def __init__(self, seconds: float) -> None:
        self.began = time.monotonic()
        self._end = self.began + seconds - END

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - time.monotonic()

    def say(self, what: str) -> None:
        """Print with the time."""
        print(f"[{time.monotonic() - self.began:.0f} s] {what}", flush=True)
