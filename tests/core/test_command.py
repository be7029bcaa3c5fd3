"""What a stage's command prints and how it ends."""

import errno
import os
import shutil
from collections.abc import Callable

import pytest

from batchwright.core.command import run
from batchwright.core.errors import InputError


def fail_with(error: Exception) -> Callable[[], str]:
    def main() -> str:
        raise error

    return main


def test_a_stage_that_succeeds_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run("pack", lambda: "3 batches")
    assert capsys.readouterr() == ("pack: 3 batches\n", "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("a.csv: no column 'q'"), "pack: error: a.csv: no column 'q'\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"), "pack: error: the disk is full; free space"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "x"), "pack: error: the disk is full; free space"),
        (shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]), "pack: error: the disk is full; free"),
        (OSError("8192 requested and 120 written"), "pack: error: the disk is full; free space"),
        (
            PermissionError(errno.EACCES, "Permission denied", "data/pairs"),
            "pack: error: data/pairs: Permission denied\n",
        ),
        (OSError("odd"), "pack: error: odd\n"),
    ],
)
def test_an_error_is_one_message_and_exit_status_1(
    capsys: pytest.CaptureFixture[str], error: Exception, message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run("pack", fail_with(error))
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


def test_a_fault_of_our_own_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run("pack", fail_with(ZeroDivisionError()))
