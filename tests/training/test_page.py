"""The examples of docs/train-elsewhere.md train."""

import re
from pathlib import Path

import pytest
import torch
import yaml
from sentence_transformers import SentenceTransformer

from batchwright.formats.shards import ShardSet
from batchwright.training.batches import ShardBatches
from batchwright.training.losses import compare
from docs.tables import ROOT
from stages.pack.plan import POLICIES
from tests.training.toys import write_shards, write_static_model

PAGE = ROOT / "docs/train-elsewhere.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def mean_loss(model: Path, shards: ShardSet) -> float:
    encoder = SentenceTransformer(str(model), device="cpu")
    losses = []
    for batch in ShardBatches(shards):
        sides = (encoder.encode(texts, convert_to_tensor=True) for texts in (batch.queries, batch.documents))
        queries, documents = (torch.nn.functional.normalize(side) for side in sides)
        masked = torch.from_numpy(batch.masked)
        none, absent = queries.new_empty(len(queries), 0, queries.shape[1]), torch.empty(len(queries), 0, dtype=bool)
        losses.append(float(compare(queries, documents, masked, none, absent, 0.05).loss))
    return sum(losses) / len(losses)


def test_a_new_project_has_what_the_page_reads() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for params in (ROOT / "params.yaml", ROOT / "project/template/params.yaml"):
        start_models = yaml.safe_load(params.read_text(encoding="utf-8"))["start_models"]
        assert set(re.findall(r"models/start/([\w-]+)", text)) | set(re.findall(r"fetch@([\w-]+)", text)) <= {
            *start_models
        }
    assert set(re.findall(r"data/shards/([\w-]+)", text)) <= {*POLICIES}


@pytest.mark.parametrize(
    ("example", "lines"), zip(EXAMPLES[:2], [15, 21], strict=True), ids=["sentence-transformers", "pytorch"]
)
def test_an_example_trains(example: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shards = write_shards(Path("data/shards/contextual"), batches=20)
    start = write_static_model(Path("models/start/minilm"))
    exec(compile(example.replace("=2e-5", "=2e-2"), PAGE.name, "exec"), {})  # a static model learns at a higher rate
    assert len(example.splitlines()) <= lines
    assert mean_loss(Path("trained"), shards) < 0.85 * mean_loss(start, shards)
