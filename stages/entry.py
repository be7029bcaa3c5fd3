"""What every stage's command does around its work: one summary line, or one error message and exit status 1."""

import errno
import os
import sys
from collections.abc import Callable

from formats.errors import InputError


def run(stage: str, main: Callable[[], str]) -> None:
    """Run ``main``; print the summary that it returns, or why it could not do its work."""
    try:
        summary = main()
    except InputError as error:
        _fail(stage, str(error))
    except OSError as error:
        _fail(stage, _explain(error))
    else:
        print(f"{stage}: {summary}")


def _fail(stage: str, message: str) -> None:
    print(f"{stage}: error: {message}", file=sys.stderr)
    sys.exit(1)


def _explain(error: OSError) -> str:
    # The text, not the number: NumPy says "N requested and M written", shutil lists many errors in one.
    signs = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), " requested and ")
    if any(sign in str(error) for sign in signs):
        return "the disk is full; free space or point BATCHWRIGHT_SCRATCH to another disk, then run the stage again"
    return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
