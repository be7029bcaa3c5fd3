"""The two phases that docs/cde.md shows: pairs first, then pairs with hard negatives."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from batchwright.formats.models import model_hash
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.training.batches import BatchReader, TrainBatch
from stages import ingest as ingest
from stages import train as train
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import PARAMS, REPO, plant_vectors, topic_pairs
from tests.train.toys import COMMON, write_toy_model


def documented() -> dict[str, Any]:
    """The YAML that the page shows, as one."""
    page = (REPO / "docs/cde.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    return {group: values for block in blocks for group, values in block.items()}


def write_sources(count: int) -> None:
    for seed, (name, extra) in enumerate({"forum": {}, "judged": {"wrong": ["one", "two"]}}.items()):
        file = Path("raw/pairs") / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        pairs = [{"query": f"{name} {query}", "document": text, **extra} for query, text in topic_pairs(count, 4, seed)]
        file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")


@pytest.fixture
def shown(workspace: Path) -> dict[str, Any]:
    """The page's parameters, written to ``params.yaml`` with what else a small run needs; its batches are packed."""
    found = documented()
    found["ingest"] |= {"held_out": 0.1, "max_reject_rate": 0.0}
    found["train"] = {"common": COMMON, "cde": {"temperature": 0.05, "context_documents": 4}}
    (workspace / "params.yaml").write_text(yaml.safe_dump(PARAMS | found))
    write_sources(60)
    ingest.main()
    plant_vectors()
    judge.main()
    cluster.main()
    pack.main("contextual")
    return found


def test_two_phases_are_two_runs(shown: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    start = write_toy_model(Path("models/start/minilm"))
    seen: list[TrainBatch] = []
    read = BatchReader.read
    monkeypatch.setattr(BatchReader, "read", lambda *given: seen.append(read(*given)) or seen[-1])
    first, second = shown["runs"]

    train.main(first)
    assert {query.split()[0] for batch in seen for query in batch.queries} == {"forum"}
    assert not any(batch.negatives for batch in seen)
    seen.clear()
    train.main(second)
    assert {query.split()[0] for batch in seen for query in batch.queries} == {"judged"}
    assert all(batch.negatives == ["one", "two"] * batch.size for batch in seen)
    assert shown["runs"][second]["start"] == f"models/{first}"
    assert ModelInfo.read(Path("models") / second).variant == "cde"
    assert len({model_hash(folder) for folder in (start, *(Path("models") / run for run in shown["runs"]))}) == 3
