"""The kind of a source, which its other keys say if ``kind`` does not."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pipelines.ingest.sources import AnySource

SOURCES: TypeAdapter[Any] = TypeAdapter(AnySource)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"path": "raw/pairs/faq.csv", "domain": "faq"}, "csv"),
        ({"path": "raw/pairs/FAQ.TSV.gz", "domain": "faq"}, "csv"),
        ({"path": "raw/pairs/*.jsonl", "domain": "faq"}, "jsonl"),
        ({"path": "raw/pairs/part-1.parquet", "domain": "faq"}, "parquet"),
        ({"path": "raw/pairs/a.b.arrow", "domain": "faq"}, "arrow"),
        ({"name": "squad", "domain": "faq"}, "huggingface"),
        ({"packages": ["json"]}, "docstrings"),
        ({"kind": "jsonl", "path": "raw/pairs/lines.csv", "domain": "faq"}, "jsonl"),
    ],
)
def test_what_else_a_source_says_tells_its_kind(entry: dict[str, Any], kind: str) -> None:
    assert SOURCES.validate_python(entry).kind == kind


@pytest.mark.parametrize(
    "entry", [{"path": "raw/pairs/faq.xlsx"}, {"path": "raw/beir/scifact"}, {}, "faq.csv", None, 5]
)
def test_a_kind_that_nothing_tells_is_asked_for(entry: object) -> None:
    with pytest.raises(ValidationError):
        SOURCES.validate_python(entry)
