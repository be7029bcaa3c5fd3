"""The stage ``index``, and the command that searches."""

from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.formats.prefixes import Prefix
from batchwright.retrievers import ModelInfo, load_retriever
from batchwright.retrievers.xtr.model import save_token_model
from batchwright.retrievers.xtr.rank import TOKENS, Imputation
from stages.__main__ import main as command_line
from stages.index import main, search
from tests.helpers import topic_pairs, write_params, write_rows
from tests.tiny_models import save_bert
from tests.train.toys import describe
from trainers.xtr.start import start_from


@pytest.fixture
def project(workspace: Path) -> Path:
    """Twelve pairs in two domains, one document in both, and an XTR model."""
    pairs = [(*pair, "train") for pair in topic_pairs(12)]
    write_rows("birds", pairs[:6])
    write_rows("fish", [*pairs[6:], ("another query", pairs[0][1], "train")])
    start = start_from(save_bert(workspace / "made"), ModelInfo(variant="biencoder", max_length=16), "cpu")
    save_token_model(start, workspace / "models/xtr", Prefix())
    describe(workspace / "models/xtr")
    write_params(workspace, {"index": {"own": {"run": "xtr"}, "other": {"run": "plain"}}})
    return workspace


def test_every_document_is_indexed_once_and_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("own").endswith("12 documents, exact")
    first = {file.name: file.read_bytes() for file in (project / "data/indexes/own").rglob("*") if file.is_file()}
    rows = pq.read_table(project / "data/indexes/own/documents.parquet").to_pylist()
    assert [row["id"] for row in rows] == sorted({row["id"] for row in rows})
    query = rows[5]["document"]
    expected = load_retriever(project / "models/xtr").index([row["document"] for row in rows]).search([query], 3)
    command_line(["search", "own", query, "--documents", "3", "--tokens", "50"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "search: 3 of 12 documents" and query in lines[1]
    assert [line.split()[3] for line in lines[1:]] == [rows[number]["id"] for number in expected[0][0]]
    main("own")
    assert first == {
        file.name: file.read_bytes() for file in (project / "data/indexes/own").rglob("*") if file.is_file()
    }


def test_the_command_offers_what_the_index_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line(["search", "--help"])
    said = capsys.readouterr().out
    assert f"{{{','.join(get_args(Imputation))}}}" in said and f"({TOKENS})" in said


def test_mistakes_are_named(project: Path) -> None:
    with pytest.raises(InputError, match="no index here"):
        search("own", "one", 3, 5, "last")
    with pytest.raises(InputError, match="at least 1"):
        search("own", "one", 3, 0, "last")
    describe(project / "models/xtr", variant="biencoder").rename(project / "models/plain")
    with pytest.raises(InputError, match="run 'plain' is of the variant biencoder; only models of the variant xtr"):
        main("other")
