"""A project with packed batches, and its commands."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from batchwright.core.atomic import CHECKSUMS
from batchwright.formats.negatives import INCONSISTENT
from batchwright.formats.pairs import REJECTS_SCHEMA, read_pairs, write_table
from project.__main__ import main
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import plant_vectors, topic_pairs, write_params, write_rows
from tests.pack.corpora import with_duplicates

Ask = Callable[..., str]

HELD_OUT = ("topic1 a held out question", "topic1 a held out answer", "test")
REJECTED = {"source": "mine.jsonl", "row": 7, "reason": "duplicate", "text": "topic2 list a file again"}


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``data`` of two domains with contextual and random batches; the filter dropped the third pair of ``fish``."""
    folder, before = tmp_path_factory.mktemp("packed"), Path.cwd()
    os.chdir(folder)
    try:
        judgements = {"filter.judgements": ["raw/judgements/said.jsonl"], "filter.likeness": 0.3}
        write_params(folder, {**judgements, "pack.cluster_share": [0.0, 1.0]})
        birds = [("topic0 list file", "topic0 ls"), *with_duplicates(topic_pairs(50))]
        write_rows("birds", [*((query, document, "train") for query, document in birds), HELD_OUT])
        write_rows("fish", [(query, document, "train") for query, document in topic_pairs(45, seed=1)])
        said = [{"query": query, "document": birds[0][1], "label": 1} for query, _ in birds[20:40]]
        Path("raw/judgements").mkdir(parents=True, exist_ok=True)
        Path("raw/judgements/said.jsonl").write_text("\n".join(map(json.dumps, said)))
        write_table(Path("data/rejects.parquet"), pa.Table.from_pylist([REJECTED]), REJECTS_SCHEMA)
        plant_vectors()
        judge.main()
        Path("data/negatives", CHECKSUMS).unlink()
        dropped = np.load("data/negatives/fish/dropped.npy")
        dropped[2] = INCONSISTENT
        np.save("data/negatives/fish/dropped.npy", dropped)
        cluster.main()
        for policy in ("contextual", "random"):
            pack.main(policy)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def project(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which the test runs in."""
    folder = tmp_path / "project"
    shutil.copytree(packed, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def dropped(project: Path) -> str:
    """The id of the pair that the filter dropped."""
    name: str = read_pairs(Path("data/pairs"), "fish", "train")["id"][2].as_py()
    return name


@pytest.fixture
def ask(project: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run ``batchwright`` in this process, and return what it prints."""

    def run(*arguments: object) -> str:
        main([str(argument) for argument in arguments])
        return capsys.readouterr().out

    return run


@pytest.fixture
def refuse(project: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run ``batchwright``, which must fail without printing anything, and return the message."""

    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        assert ended.value.code == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    return run


@pytest.fixture
def ask_json(ask: Ask) -> Callable[..., Any]:
    """Run ``batchwright ... --json``, and return what it prints as Python objects."""
    return lambda *arguments: json.loads(ask(*arguments, "--json"))


@pytest.fixture
def no_vectors(project: Path) -> Iterator[None]:
    """The project without vectors."""
    shutil.rmtree("data/vectors")
    yield
