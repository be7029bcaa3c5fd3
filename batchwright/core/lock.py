"""One run of a stage at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import quote

from batchwright.core.errors import InputError
from batchwright.core.runtime import SCRATCH, scratch_root


@contextmanager
def alone(stage: str) -> Iterator[None]:
    """Hold the locks of ``stage`` during the block; they end with the process, however that ends.

    One keeps apart those that write this project, the other those that share a scratch folder.

    Raises:
        InputError: another process holds one of them.
    """
    with ExitStack() as held:
        for root in sorted({SCRATCH.resolve(), scratch_root().resolve()}):
            (root / "locks").mkdir(parents=True, exist_ok=True)
            handle = held.enter_context((root / "locks" / quote(stage, safe=" ")).open("w"))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError("another process is running this here; wait until it ends, or stop it") from None
        yield
