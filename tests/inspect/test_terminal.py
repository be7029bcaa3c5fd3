"""What reaches a terminal: no control characters, no long lines, and colours only where they are shown."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.formats.pairs import REJECTS_SCHEMA, write_table
from batchwright.inspect.terminal import Terminal, cut, fold, plain, span
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params
from tests.inspect.conftest import Ask

EVIL = "\x1b]0;owned\x07\x1b[31m \x9b2J\x7f\u202e\u2028 \x00evil"
COMMANDS = [
    ["show"],
    ["show", 0],
    ["show", 0, "--full"],
    ["show", 0, "--row", 0],
    ["show", "evil"],
    ["show", "evil", "--full"],
    ["show", "only", "one"],
    ["show", "--worst", "masked"],
    ["diff", "random", "contextual"],
    ["diff", "random", "contextual", "--json"],
    ["show", 0, "--json"],
    ["show", "evil", "--json"],
]


@pytest.fixture
def evil(ask: Ask) -> Ask:
    """The same, for texts, a domain and a source that try to control the terminal."""
    made = [(f"{query} {EVIL}", f"{document}\n\t{EVIL}") for query, document in topic_pairs(20)]
    write_pairs(f"d{EVIL}", [*made, (f"topic0 only one {EVIL}", f"topic0 only one {EVIL}")])
    for domain in ("birds", "fish"):
        Path(f"data/pairs/{domain}.parquet").unlink()
    rejected = {"source": EVIL, "row": 1, "reason": EVIL, "text": EVIL}
    write_table(Path("data/rejects.parquet"), pa.Table.from_pylist([rejected]), REJECTS_SCHEMA)
    write_params(Path())
    plant_vectors()
    judge.main()
    cluster.main()
    for policy in ("contextual", "random"):
        pack.main(policy)
    return ask


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(str, command)))
def test_no_control_character_is_printed(evil: Ask, capsys: pytest.CaptureFixture[str], command: list[object]) -> None:
    capsys.readouterr()
    printed = evil(*command)
    assert [character for character in printed if character != "\n" and not character.isprintable()] == []
    assert "evil" in printed or command[0] == "diff" or len(command) == 1
    if command[-1] == "--json":
        assert EVIL in str(json.loads(printed)).encode().decode("unicode_escape") or json.loads(printed)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("command", [command for command in COMMANDS if command[-1] != "--json"])
def test_no_line_is_longer_than_the_terminal(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, command: list[object], width: int
) -> None:
    monkeypatch.setattr(Terminal, "of_stdout", lambda: Terminal(width))
    asked = [{"evil": "topic1", "only": "topic0", "one": "list"}.get(str(word), word) for word in command]
    assert max(span(line) for line in ask(*asked).splitlines()) <= width


@pytest.mark.parametrize("width", [60, 100])
def test_a_rejected_row_of_a_long_source_is_cut_to_the_terminal_but_for_its_number(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(Terminal, "of_stdout", lambda: Terminal(width))
    row = {"source": f"{'folder/' * 30}mine.jsonl", "row": 1234567, "reason": "duplicate", "text": "unheard of " * 9}
    write_table(Path("data/rejects.parquet"), pa.Table.from_pylist([row]), REJECTS_SCHEMA)
    printed = ask("show", "unheard of").splitlines()
    assert max(map(span, printed)) <= width
    assert re.search(r"duplicate  folder/.*…  1234567  unheard ", printed[-1])


def test_other_columns_are_cut_if_they_leave_no_room_for_texts() -> None:
    """Nothing is cut that fits; otherwise the widest columns are, alike."""
    assert Terminal(60).table(["a", "b"], [["x" * 46, "word " * 9]], texts=1)[1] == "x" * 46 + "  word word w…"
    lines = Terminal(60).table(["", "a", "b", "text"], [["7", "x" * 80, "y" * 90, "word " * 9]], texts=1)
    assert lines[1] == f"7  {'x' * 19}…  {'y' * 19}…  word word wo…"
    assert all(cut("text", width) == "…" for width in (1, 0, -5))


@given(st.text(), st.integers(2, 40))
def test_a_cut_text_fits_and_begins_as_the_text_does(text: str, width: int) -> None:
    short = cut(text, width)
    assert span(short) <= width
    assert plain(text).startswith(short.removesuffix("…").rstrip())
    assert short.isprintable() or set(short) & set("\u200c\u200d")


def test_wide_characters_take_two_columns() -> None:
    assert span("日本語") == 6
    assert cut("日本語の文章", 7) == "日本語…"
    assert Terminal(30).table(["a", "text"], [["日本", "x"], ["b", "y"]], texts=1)[2] == "b     y"


def test_folded_texts_keep_their_indentation_and_say_that_there_is_more() -> None:
    text = "def f():\n\n\treturn 1\n    # end\n"
    assert fold(text, 40, 2) == ["def f():", "    return 1 …"]
    assert fold(text, 40, None) == ["def f():", "    return 1", "    # end"]
    assert fold("word " * 10, 20, None) == ["word word word word"] * 2 + ["word word"]


@pytest.mark.parametrize(
    ("terminal", "variables", "coloured"), [(True, {}, True), (True, {"NO_COLOR": "1"}, False), (False, {}, False)]
)
def test_colours_are_for_terminals_only(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, variables: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "300")
    found = Terminal.of_stdout()
    assert found == Terminal(120 if terminal else 100, coloured)
    assert found.bold("x") == ("\x1b[1mx\x1b[0m" if coloured else "x")
