"""One run of a stage at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from batchwright.core.errors import InputError
from batchwright.core.runtime import scratch


@contextmanager
def alone(stage: str) -> Iterator[None]:
    """Hold the lock of ``stage`` during the block; it ends with the process, however that ends.

    Raises:
        InputError: another process holds it.
    """
    with (scratch("locks") / quote(stage, safe=" ")).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError("another process is running this here; wait until it ends, or stop it") from None
        yield
