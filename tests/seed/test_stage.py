"""``python -m stages.pretrain`` and what comes after it, as a user runs them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from formats.results import read_json
from tests.helpers import run_stage, topic_pairs, write_pairs
from tests.seed.toys import PARAMS
from tests.train.toys import toy_batch, toy_rows, write_toy_shards


def write_params(folder: Path, pretrain: dict[str, Any]) -> None:
    common = {"epochs": 1, "chunk": 4, "learning_rate": 1e-3, "warm_up": 0.1, "weight_decay": 0.01, "clip": 1.0}
    seed = {"model": "./models/seed-pretrained", "max_length": 16, "temperature": 0.5, "loss": "hinge"}
    values = {"base": {"seed": 3}, "pretrain": {"seed": pretrain}, "train": {"common": common, "seed": seed}}
    (folder / "params.yaml").write_text(yaml.safe_dump(values))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_pairs("toys", topic_pairs(60))
    write_params(tmp_path, PARAMS)
    return tmp_path


def test_pretraining_then_finetuning_with_the_hinge(folder: Path) -> None:
    done = run_stage("pretrain", "seed", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pretrain: seed: 6 steps; on held-out text MLM ")
    summary = read_json(folder / "results/pretrain/seed.json", made_by="pretrain")
    assert summary["steps"] == 6
    assert set(summary["last"]) == {"mlm", "decoder", "h0_gap"}
    assert not list((folder / ".scratch").rglob("*.tokens"))
    write_toy_shards(folder / "data/shards/random", [toy_batch(toy_rows(6, seed, negatives=2)) for seed in range(3)])
    done = run_stage("train", "seed", "--batches", "random", "--hard-negatives", "2", cwd=folder)
    assert done.returncode == 0, done.stderr
    card = (folder / "models/seed-random/README.md").read_text()
    assert "SEED-Encoder" in card and "loss: hinge" in card and "hard_negatives: 2" in card
    done = run_stage("train", "seed", "--batches", "random", "--start", "models/seed-random", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "`seed-random`" in (folder / "models/seed-random/README.md").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder": {"kind": "seed", "windw": 2}}, "unknown parameter 'pretrain.seed.decoder.windw'; did you mean"),
        ({"decoder": {"kind": "sed"}}, "there is no 'sed'; did you mean 'seed'?"),
        ({"encoder": {"kind": "new", "vocabulary": 12}}, "12 pieces cannot hold the texts' characters"),
        ({"encoder": {"kind": "start", "model": "./nowhere"}}, "model './nowhere': no such folder"),
        (
            {"encoder": {"kind": "start", "model": "models/seed-pretrained"}},
            "'models/seed-pretrained' is what this stage writes, and DVC removes it before; copy it to another folder",
        ),
        ({"held_out": 1e-9}, "no text is left for validation"),
    ],
)
def test_bad_input_is_one_line(folder: Path, change: dict[str, Any], message: str) -> None:
    write_params(folder, PARAMS | change)
    done = run_stage("pretrain", "seed", cwd=folder)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (folder / "models").exists()


def test_an_empty_corpus_is_refused(folder: Path) -> None:
    (folder / "data/pairs/toys.parquet").unlink()
    done = run_stage("pretrain", "seed", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("no pairs here; run the stage 'ingest' first")
