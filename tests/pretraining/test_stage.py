"""``python -m stages pretrain`` and then ``stages.train``, as a user runs them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from stages import pretrain
from stages.pretrain import main
from tests.helpers import run_stage, topic_pairs, write_pairs
from tests.pretraining.toys import PARAMS
from tests.train.toys import COMMON, toy_batch, toy_rows, write_toy_shards


def write_params(folder: Path, pretrain: dict[str, Any]) -> None:
    train = {"common": COMMON, "seed_encoder": {"loss": "hinge"}}
    run = {"variant": "seed_encoder", "batches": "random"}
    runs = {
        "first": {**run, "start": "models/start/seed_encoder", "hard_negatives": 2},
        "second": {**run, "start": "models/first"},
    }
    values = {"base": {"seed": 3}, "pretrain": {"seed_encoder": pretrain}, "train": train, "runs": runs}
    (folder / "params.yaml").write_text(yaml.safe_dump(values))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_pairs("toys", topic_pairs(60))
    write_params(tmp_path, PARAMS)
    return tmp_path


def test_pretraining_then_finetuning_with_the_hinge_loss(folder: Path, warm: Path) -> None:
    done = run_stage("pretrain", "seed_encoder", cwd=folder, programs=warm)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pretrain: seed_encoder: 6 steps; on held-out text MLM ")
    summary = read_json(folder / "results/pretrain/seed_encoder.json", made_by="pretrain")
    assert summary["steps"] == 6
    assert set(summary["last"]) == {"mlm", "decoder", "h0_gap"}
    assert not list((folder / ".scratch").rglob("*.tokens"))
    write_toy_shards(folder / "data/shards/random", [toy_batch(toy_rows(6, seed, negatives=2)) for seed in range(3)])
    for run in ("first", "second"):
        done = run_stage("train", run, cwd=folder, programs=warm)
        assert done.returncode == 0, done.stderr
    first, second = ((folder / f"models/{run}/README.md").read_text() for run in ("first", "second"))
    assert "SEED-Encoder" in first and "loss: hinge" in first and "hard_negatives: 2" in first
    assert "`seed_encoder`" in first and "`first`" in second


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"decoder": {"kind": "weak", "windw": 2}},
            "unknown parameter 'pretrain.seed_encoder.decoder.windw'; did you mean",
        ),
        ({"decoder": {"kind": "weka"}}, "unknown value 'weka'; did you mean 'weak'?"),
        ({"encoder": {"kind": "new", "vocab_size": 12}}, "12 pieces cannot hold the texts' characters"),
        ({"encoder": {"kind": "start", "model": "./nowhere"}}, "model './nowhere': no such folder"),
        ({"held_out": 1e-9}, "no text is left for validation"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(folder: Path, change: dict[str, Any], message: str) -> None:
    write_params(folder, PARAMS | change)
    with pytest.raises(InputError) as refused:
        main("seed_encoder")
    assert message in str(refused.value)
    assert not (folder / "models").exists()


def test_text_that_is_not_pairs_is_read_from_any_kind_of_source(folder: Path, warm: Path) -> None:
    lines = [f'{{"text": "sentence {number} of a book"}}' for number in range(30)] + ["no JSON", '{"text": null}']
    (folder / "raw/texts").mkdir(parents=True)
    (folder / "raw/texts/book.jsonl").write_text("\n".join(lines))
    columns = {"query": "text", "document": "text"}
    source = {"kind": "jsonl", "path": "raw/texts/book.jsonl", "columns": columns, "domain": "book"}
    write_params(folder, PARAMS | {"texts": [source]})
    done = run_stage("pretrain", "seed_encoder", cwd=folder, programs=warm)
    assert done.returncode == 0, done.stderr
    assert "30 texts besides those of pairs, 2 rows without one" in done.stdout
    words = (folder / "models/start/seed_encoder/tokenizer.json").read_text()
    assert '"book"' in words and '"sentence"' in words
    write_params(folder, PARAMS | {"texts": [source | {"pth": "raw/texts/book.jsonl"}]})
    with pytest.raises(
        InputError, match=r"unknown parameter 'pretrain.seed_encoder.texts.0.pth'; did you mean 'path'\?"
    ):
        main("seed_encoder")


def test_texts_that_are_not_there_are_named(folder: Path) -> None:
    (folder / "raw/texts/a").mkdir(parents=True)
    write_params(folder, PARAMS | {"texts": [{"kind": "beir", "path": "raw/texts/a", "domain": "a"}]})
    with pytest.raises(InputError, match=r"corpus\.jsonl: no such file; a BEIR folder has"):
        main("seed_encoder")


def test_a_model_that_another_stage_writes_is_refused(folder: Path) -> None:
    (folder / "models/start/other").mkdir(parents=True)
    write_params(folder, PARAMS | {"encoder": {"kind": "start", "model": "models/start/other"}})
    with pytest.raises(InputError, match="models/start/other: lies outside raw/models, so dvc repro would not notice"):
        main("seed_encoder")


def test_an_empty_corpus_is_refused(folder: Path, warm: Path) -> None:
    (folder / "data/pairs/toys.parquet").unlink()
    done = run_stage("pretrain", "seed_encoder", cwd=folder, programs=warm)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("no pairs here; run the stage 'ingest' first")
    assert "Traceback" not in done.stderr
    assert not (folder / "models").exists()


def test_a_damaged_corpus_of_an_unfinished_run_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main("seed_encoder")
    weights = folder / "models/start/seed_encoder/model.safetensors"
    whole = weights.read_bytes()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pretrain, "launch", interrupted)
        main("seed_encoder")
    (tokens,) = (folder / ".scratch/pretrain").glob("*/corpus/training.tokens")
    tokens.write_bytes(bytes(tokens.stat().st_size))
    main("seed_encoder")
    assert f"warning: {tokens.parent}: damaged; it is made again" in capsys.readouterr().err
    assert weights.read_bytes() == whole


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt
