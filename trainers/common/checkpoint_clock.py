"""Says when to save a checkpoint: every so many seconds, after the same steps on all ranks."""

import time

import torch
from torch import distributed as dist

from trainers.common.distributed import world_size


class CheckpointClock:
    """Strikes about every ``seconds``, on all ranks at once if each asks after every step.

    Rank 0 has the time. It tells the others rarely, since that makes a GPU wait: whether it strikes, and after how many
    steps to ask it again. These are as many as fit into what is left at the pace since it was asked last, but at most
    twice as many as before, in case the steps become slower.
    """

    def __init__(self, seconds: float, device: str) -> None:
        self._seconds, self._device = seconds, device
        self._struck = self._asked = time.monotonic()
        self._steps = self._left = 1

    def strikes(self) -> bool:
        """Return whether to save now, after a step."""
        self._left -= 1
        if self._left:
            return False
        strikes, self._left = self._rank_0s(*self._look(time.monotonic()))
        self._steps = self._left
        return bool(strikes)

    def _look(self, now: float) -> tuple[int, int]:
        strikes = now - self._struck >= self._seconds
        if strikes:
            self._struck = now
        pace = max(now - self._asked, 1e-6) / self._steps
        self._asked = now
        fit = int((self._struck + self._seconds - now) / pace)
        return int(strikes), max(1, min(fit, 2 * self._steps))

    def _rank_0s(self, strikes: int, steps: int) -> tuple[int, int]:
        if world_size() == 1:
            return strikes, steps
        told = torch.tensor([strikes, steps], device=self._device)
        dist.broadcast(told, src=0)
        strikes, steps = told.tolist()
        return strikes, steps
