"""Messages that a terminal can show."""

from pathlib import Path

import pytest

from batchwright.core.command import run
from batchwright.core.errors import InputError
from batchwright.core.terminal import MOST, safe, shown


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


def test_what_could_control_a_terminal_is_escaped() -> None:
    assert safe("a\x1b]0;title\x07\r\u202e\nb") == "a\\x1b]0;title\\x07\\r\\u202e\nb"
    assert safe("é 日本 \ud800") == "é 日本 \\ud800"
    assert shown("two\nlines\x1b", 8) == "'two\\nline…'"
