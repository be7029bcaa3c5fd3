"""The one exception meant for the user to read, and a reason for errors that every library words in its own way."""

import errno
import os

DISK_IS_FULL = "the disk is full; free space or point BATCHWRIGHT_SCRATCH to another disk, then run the stage again"


class InputError(Exception):
    """The user's input is wrong.

    The message names the file, row or key, what is wrong with it and what to change.
    A stage that raises it exits with status 1, prints no traceback and writes no output.
    """


def disk_is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, comes from a full disk.

    Texts are compared, not error numbers: libraries raise exceptions of their own, NumPy says "N requested and M
    written", and shutil lists many errors in one.
    """
    signs = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
    while error:
        text = str(error)
        if any(sign in text for sign in signs) or (isinstance(error, OSError) and " requested and " in text):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False
