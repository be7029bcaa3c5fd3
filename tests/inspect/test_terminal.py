"""What reaches a terminal: no control characters, no long lines, and colours only where they are shown."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType

from batchwright.formats.pairs import REJECTS_SCHEMA, write_table
from batchwright.inspect import terminal
from batchwright.inspect.terminal import as_text, excerpt, line, plain, table
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
    narrow(monkeypatch, width)
    asked = [{"evil": "topic1", "only": "topic0", "one": "list"}.get(str(word), word) for word in command]
    assert max(cell_len(row) for row in ask(*asked).splitlines()) <= width


@pytest.mark.parametrize("width", [60, 100])
def test_a_rejected_row_of_a_long_source_is_cut_to_the_terminal_but_for_its_number(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    narrow(monkeypatch, width)
    row = {"source": f"{'folder/' * 30}mine.jsonl", "row": 1234567, "reason": "duplicate", "text": "unheard of " * 9}
    write_table(Path("data/rejects.parquet"), pa.Table.from_pylist([row]), REJECTS_SCHEMA)
    printed = ask("show", "unheard of").splitlines()
    assert max(map(cell_len, printed)) <= width
    assert re.search(r"duplicate  folder/.*…  1234567  unheard ", printed[-1])


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Let the answer be laid out for this many columns."""
    monkeypatch.setattr(terminal, "ELSEWHERE", width)


def printed(monkeypatch: pytest.MonkeyPatch, width: int, *parts: RenderableType) -> list[str]:
    narrow(monkeypatch, width)
    return as_text(*parts).split("\n")


def test_the_widest_columns_are_cut_alike_and_those_of_numbers_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut that fits."""
    assert printed(monkeypatch, 60, table(["a", "b"], [["x" * 40, "word " * 3]]))[1] == "x" * 40 + "  word word word"
    rows = [["1234567", "x" * 80, "y" * 90, "word " * 9]]
    cut = printed(monkeypatch, 60, table(["", "a", "b", "text"], rows))[1]
    assert re.fullmatch(r"1234567  x{14}…  y{14}…  word word word w…", cut)
    assert cell_len(cut) <= 60


@given(st.text(), st.integers(2, 40))
def test_a_cut_text_fits_and_begins_as_the_text_does(text: str, width: int) -> None:
    console = Console(width=width, color_system=None, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(Group(line(text)))
    short = captured.get().rstrip("\n")
    assert "\n" not in short and cell_len(short) <= width
    assert plain(text).startswith(short.removesuffix("…").rstrip())
    assert short.isprintable() or set(short) & set("\u200c\u200d")


def test_wide_characters_take_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 7, line("日本語の文章")) == ["日本語…"]
    assert printed(monkeypatch, 30, table(["a", "text"], [["日本", "x"], ["b", "y"]]))[2] == "b     y"


def test_excerpts_keep_their_indentation_and_say_that_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n\n\treturn 1\n    # end\n"
    assert printed(monkeypatch, 40, excerpt(text, 2)) == ["def f():", "    return 1 …"]
    assert printed(monkeypatch, 40, excerpt(text, None)) == ["def f():", "    return 1", "    # end"]
    assert printed(monkeypatch, 20, excerpt("word " * 10, None)) == ["word word word word"] * 2 + ["word word"]


@pytest.mark.parametrize(
    ("is_terminal", "variables", "shown"),
    [
        (True, {}, "\x1b[31mx\x1b[0m"),
        (True, {"NO_COLOR": "1"}, "x"),
        (False, {}, "x"),
    ],
)
def test_colours_are_for_terminals_only(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, variables: dict[str, str], shown: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", "COLUMNS": "300", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert terminal.screen().width == (120 if is_terminal else 100)
    assert as_text(line(("x", "red"))) == shown
