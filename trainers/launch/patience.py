"""For how long a training waits for its workers.

Ray's controller imports this, so it imports little.
"""

import time

from ray.train import ControllerError, TrainingFailedError
from ray.train.v2._internal.execution.callback import ControllerCallback
from ray.train.v2._internal.execution.controller.state import PreemptingState, RunningState, TrainControllerState


class OutOfPatienceError(Exception):
    """Workers could not be started for as long as ``Patience`` waits."""


class Patience(ControllerCallback):  # type: ignore[misc]
    """Ends a training whose workers cannot be started for some ``seconds``; Ray itself would wait for ever."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def after_controller_state_update(self, previous: TrainControllerState, current: TrainControllerState) -> None:
        """See Ray's class; it is called in Ray's controller, again and again while that waits."""
        if isinstance(current, RunningState | PreemptingState):
            self._since = None
            return
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since > self._seconds:
            raise OutOfPatienceError
        if type(previous) is type(current):
            time.sleep(1)  # Ray asks again at once


def waited_in_vain(error: TrainingFailedError) -> bool:
    """Whether a training was ended by ``Patience``."""
    return isinstance(error, ControllerError) and isinstance(error.controller_failure, OutOfPatienceError)
