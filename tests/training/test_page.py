"""The examples of docs/train-elsewhere.md train."""

import re
from pathlib import Path

import pytest
import torch
import yaml
from sentence_transformers import SentenceTransformer

from batchwright.formats.shards import ShardSet
from batchwright.training import sentence_transformers
from batchwright.training.batches import ShardBatches
from batchwright.training.losses import compare
from docs.tables import ROOT
from project.__main__ import main
from stages.pack.plan import POLICIES
from tests.helpers import run_python
from tests.train.toys import write_toy_model
from tests.training.toys import write_shards, write_static_model

PAGE = ROOT / "docs/train-elsewhere.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


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
    for params in (ROOT / "params.yaml", ROOT / "project/template/params.yaml"):
        start_models = yaml.safe_load(params.read_text(encoding="utf-8"))["start_models"]
        assert set(re.findall(r"models/start/([\w-]+)", TEXT)) | set(re.findall(r"fetch@([\w-]+)", TEXT)) <= {
            *start_models
        }
    assert set(re.findall(r"data/shards/([\w-]+)", TEXT)) <= {*POLICIES}


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


@pytest.mark.slow  # two processes import torch
def test_the_first_example_trains_on_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shards = write_shards(Path("data/shards/contextual"), batches=20)
    start = write_static_model(Path("models/start/minilm"))
    Path("train.py").write_text(EXAMPLES[0].replace("=2e-5", "=2e-2, use_cpu=True"))
    [command] = re.findall(r"`torchrun (--nproc-per-node 2 train.py)`", TEXT)
    done = run_python("-m", "torch.distributed.run", *command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert mean_loss(Path("trained"), shards) < 0.85 * mean_loss(start, shards)


def test_what_the_table_says_can_be_written(tmp_path: Path) -> None:
    known = {name: getattr(sentence_transformers, name) for name in sentence_transformers.__all__}
    known |= {"shards": write_shards(tmp_path / "shards", batches=1, scored=True)}
    known["model"] = SentenceTransformer(str(write_toy_model(tmp_path / "model", layers=1)), device="cpu")
    written = re.findall(rf"`((?:{'|'.join(sentence_transformers.__all__)})\(.*?\))`", TEXT)
    assert len(written) == 7
    for code in written:
        eval(code, dict(known))


def test_the_exports_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_shards(Path("data/shards/contextual"), batches=1, scored=True)
    commands = re.findall(r"^batchwright (export .*)", TEXT, re.MULTILINE)
    for command in commands:
        main(command.split())
        assert Path(command.split()[2]).stat().st_size > 0
    assert len(commands) == 3
