"""Texts are cleaned without breaking code, and invalid rows are rejected with a reason."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.normalise import Pair, RowError, clean, excerpt, normalise
from pipelines.ingest.sources.base import Row

texts = st.text(st.characters(codec="utf-8")) | st.text(" \t\r\n\u00a0ae\u0301\x0b\u2028", max_size=12)


@settings(deadline=None)
@given(texts)
def test_cleaning_is_idempotent(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@settings(deadline=None)
@given(texts)
def test_cleaning_changes_only_white_space_and_composition(text: str) -> None:
    assert "".join(clean(text).split()) == "".join(unicodedata.normalize("NFC", text).split())


@settings(deadline=None)
@given(texts)
def test_a_cleaned_text_has_no_white_space_at_ends_of_lines_or_text(text: str) -> None:
    cleaned = clean(text)
    assert "\r" not in cleaned
    assert cleaned == "\n".join(line.rstrip() for line in cleaned.split("\n")).strip("\n")
    assert "\n" in cleaned or cleaned == cleaned.strip()


def test_code_keeps_its_indentation_and_line_breaks() -> None:
    assert clean("\r\n  def f():  \r\n\r\n      return 1\r\n\r\n") == "def f():\n\n    return 1"


def test_composed_and_decomposed_letters_become_equal() -> None:
    assert clean("cafe\u0301") == clean("caf\u00e9")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"query": None}, "no query"),
        ({"document": None}, "no document"),
        ({"domain": None}, "no domain"),
        ({"query": " \n\t"}, "empty query"),
        ({"query": "\u200b"}, "empty query"),
        ({"query": "\ufeff \u2060"}, "empty query"),
        ({"query": "\xad\xad"}, "empty query"),
        ({"document": "\0\x1b"}, "empty document"),
        ({"document": "\u3164\ufe0f\U000e0041"}, "empty document"),
        ({"document": ""}, "empty document"),
        ({"query": "???"}, "query is punctuation only"),
        ({"query": "\u2026 \u00bf\u200b?"}, "query is punctuation only"),
        ({"query": "\u0301 ?\u20dd"}, "query is punctuation only"),
        ({"query": 3}, "query is not text"),
        ({"document": ["d"]}, "document is not text"),
        ({"domain": 1.5}, "domain is not text"),
        ({"query": "a\udcff"}, "query is not UTF-8"),
        ({"document": "\ud800"}, "document is not UTF-8"),
        ({"query": " same\r\n", "document": "same"}, "query equals document"),
        ({"negatives": [{}]}, "negative is not text"),
        ({"document": " nan"}, "document is 'nan', which pandas writes where there is none"),
        ({"query": "<NA>"}, "query is '<NA>', which pandas writes where there is none"),
        ({"domain": "é" * 50}, "domain is too long for a name"),
        ({"fault": "not valid JSON"}, "not valid JSON"),
    ],
)
def test_an_invalid_row_is_rejected_with_its_reason(changed: dict[str, object], reason: str) -> None:
    row = Row("file", 1, "q", "d", "domain")._replace(**changed)
    with pytest.raises(RowError) as raised:
        normalise(row)
    assert str(raised.value) == reason


def test_hard_negatives_are_cleaned_and_deduplicated() -> None:
    row = Row("file", 1, " q ", "d\n", "x", negatives=["n", "n ", "m", "", "\u200b", None, "nan"])
    assert normalise(row) == Pair("q", "d", "x", ["n", "m"])


def test_invisible_characters_among_others_stay() -> None:
    assert (
        normalise(Row("file", 1, "\u0645\u06cc\u200c\u0634\u0648\u062f", "\U0001f468\u200d\U0001f469", "x")).query[2]
        == "\u200c"
    )


@settings(deadline=None)
@given(st.text() | st.none() | st.integers(), st.text() | st.none())
def test_an_excerpt_is_one_short_printable_line(query: object, document: object) -> None:
    shown = excerpt(Row("file", 1, query, document, None))
    assert shown.isprintable()
    assert len(shown) <= 200
