"""Messages that a terminal can show."""

from pathlib import Path

import pytest

from batchwright.core.command import run
from batchwright.core.errors import InputError
from batchwright.core.terminal import MOST, TOLD, safe, shown, warn
from tests.helpers import run_python


def fail() -> str:
    raise InputError("a.csv: no column 'q'; columns found: \x1b[2J\x07" + ", ".join(f"column {n}" for n in range(500)))


def test_a_long_message_is_cut_and_the_rest_is_in_a_file(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("ingest", fail)
    said = capsys.readouterr().err
    assert len(said) <= MOST + len("ingest: error: \n")
    assert said.endswith("... (all of it is in .scratch/messages/ingest.txt)\n")
    assert "column 499" in (workspace / ".scratch/messages/ingest.txt").read_text()
    assert "\x1b" not in said and r"\x1b[2J\x07" in said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_characters_that_the_terminal_lacks_are_replaced(workspace: Path, encoding: str) -> None:
    script = "from batchwright.core.command import run; run('pack', lambda: 'the domain \u6f22\u5b57')"
    done = run_python("-c", script, cwd=workspace, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stdout, done.stderr) == (0, "pack: the domain ??\n", "")


def test_what_could_control_a_terminal_is_escaped() -> None:
    assert safe("a\x1b]0;title\x07\r\u202e\nb") == "a\\x1b]0;title\\x07\\r\\u202e\nb"
    assert safe("é 日本 \ud800") == "é 日本 \\ud800"
    assert shown("two\nlines\x1b", 8) == "'two\\nline…'"


def test_of_many_warnings_the_first_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    warn("pack", [f"\x1b{number}" for number in range(TOLD)])
    assert capsys.readouterr().err == "".join(f"pack: warning: \\x1b{number}\n" for number in range(TOLD))
    warn("pack", map(str, range(TOLD + 3)))
    assert capsys.readouterr().err.splitlines()[TOLD - 1 :] == [
        f"pack: warning: {TOLD - 1}",
        "pack: warning: and 3 more like the last one",
    ]
    warn("pack", [])
    assert capsys.readouterr().err == ""
