"""Pairs that several domains have are told, since they count in each."""

import json
from pathlib import Path

import pytest

from tests.ingest.running import ingest


def write(domain: str, *numbers: range, mark: str = "", more: str = "") -> dict[str, str]:
    rows = [{"query": f"q {number}{mark}", "document": f"d {number}{more}"} for some in numbers for number in some]
    Path(f"{domain}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"kind": "jsonl", "path": f"{domain}.jsonl", "domain": domain}


def test_pairs_of_two_domains_are_told(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [
        write("a", range(300), range(300)),  # repeated within a domain, which is told otherwise
        write("b", range(100, 400), range(1000, 2000), mark="?"),  # which makes no other query
        write("c", range(395, 500)),
        write("d", range(2), range(5000, 5300)),
        write("e", range(300), more=" is another document"),
    ]
    ingest(*sources)
    told = "and count in both; if that is not meant, leave one out"
    assert capsys.readouterr().err.splitlines() == [
        f"ingest: warning: 200 of 300 pairs of 'a' are pairs of 'b', too, {told}",
        f"ingest: warning: 5 of 105 pairs of 'c' are pairs of 'b', too, {told}",
    ]


def test_of_many_the_first_are_told_and_the_others_counted(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ingest(*(write(name, range(number, 300)) for number, name in enumerate("abcdefghijklmn")))
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("ingest: warning: 299 of 299 pairs of 'b' are pairs of 'a', too")
    assert said[10:] == ["ingest: warning: and 3 more like the last one"]
