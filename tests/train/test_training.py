"""Training the biencoder in this process."""

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.core import storage
from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.formats.shards import Manifest
from tests.train.toys import (
    retrieve,
    toy_batch,
    toy_job,
    toy_rows,
    toy_tokenizer,
    write_toy_model,
    write_toy_shards,
    write_toy_static,
)
from trainers.common import run, step_loop
from trainers.common.sentence_learner import SentenceLearner
from trainers.variants import train

STEPS = 40


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_model(tmp_path_factory.mktemp("start") / "toy")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    batches = [toy_batch(toy_rows(12, seed)) for seed in range(STEPS)]
    return write_toy_shards(tmp_path_factory.mktemp("shards") / "contextual", batches)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_training_lowers_the_loss_and_the_curve_has_one_row_per_step(tmp_path: Path, start: Path, shards: Path) -> None:
    train(toy_job(tmp_path, start, shards, mini_batch_size=12, learning_rate=1e-2))
    rows = read_tsv(tmp_path / "curve.tsv", made_by="train")
    assert [row["step"] for row in rows] == [str(step + 1) for step in range(STEPS)]
    assert list(rows[0]) == ["step", "epoch", "loss", "accuracy", "learning_rate"]
    losses = [float(row["loss"]) for row in rows]
    assert np.mean(losses[-10:]) < np.mean(losses[:5]) - 0.3


def test_a_learners_own_measures_are_columns_of_the_curve(
    tmp_path: Path, start: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backward = SentenceLearner.backward
    measured = iter([0.25, 0.5])
    monkeypatch.setattr(
        SentenceLearner,
        "backward",
        lambda learner, batch: backward(learner, batch)._replace(measures={"own": next(measured)}),
    )
    train(toy_job(tmp_path, start, shards, steps=2))
    assert [row["own"] for row in read_tsv(tmp_path / "curve.tsv", made_by="train")] == ["0.25", "0.5"]


def die_at_the_sixth_step(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Save a checkpoint after each step, and end the sixth with an interruption; return what grows with each step."""
    monkeypatch.setattr(step_loop, "SAVE_EVERY_SECONDS", 0.0)
    backward, calls = SentenceLearner.backward, list[int]()

    def die(learner: SentenceLearner, batch: object) -> object:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return backward(learner, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(SentenceLearner, "backward", die)
    return calls


def test_two_runs_and_a_killed_and_resumed_one_give_the_same_bytes(
    tmp_path: Path, start: Path, shards: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [toy_job(tmp_path / name, start, shards, steps=8) for name in ("first", "second", "killed")]
    train(jobs[0])
    train(jobs[1])

    calls = die_at_the_sixth_step(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(jobs[2])
    assert not jobs[2].model.exists()
    train(jobs[2])

    assert len(calls) == 6 + 3
    for other in ("second", "killed"):
        assert content(tmp_path / "first") == content(tmp_path / other)
    assert not [file for file in scratch.rglob("*") if file.is_file()]


def test_a_run_with_another_parameter_does_not_resume(tmp_path: Path, start: Path, shards: Path) -> None:
    one, other = (toy_job(tmp_path, start, shards, temperature=value) for value in (0.1, 0.2))
    assert one.scratch != other.scratch


def test_the_model_opens_offline_without_this_project(tmp_path: Path, start: Path, shards: Path, warm: Path) -> None:
    prefixes = {"default": {"query": "query: ", "document": "document: "}}
    train(toy_job(tmp_path / "out", start, shards, steps=4, prefixes=prefixes))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = (
        "import sys, numpy; from sentence_transformers import SentenceTransformer\n"
        f"model = SentenceTransformer({str(tmp_path / 'out' / 'model')!r}, device='cpu')\n"
        "assert model.prompts == {'query': 'query: ', 'document': 'document: '}\n"
        "numpy.save('vectors.npy', model.encode_query(['w1 w2', 'w3']))\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('trainers', 'formats', 'stages')]\n"
    )
    environment = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PATH": "", "HOME": str(elsewhere)}
    subprocess.run([warm / "python", "-c", code], cwd=elsewhere, env=environment, check=True)
    here = SentenceTransformer(str(tmp_path / "out" / "model"), device="cpu")
    vectors = here.encode(["query: w1 w2", "query: w3"])
    assert np.allclose(np.load(elsewhere / "vectors.npy"), vectors, atol=1e-6)


def test_the_card_has_a_header_and_no_path(tmp_path: Path, start: Path, shards: Path) -> None:
    train(toy_job(tmp_path, start, shards, steps=2))
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    assert "| batches | contextual, 12 pairs each |" in card
    assert "$" not in card
    texts = b"".join(content(tmp_path / "model").values())
    assert str(tmp_path).encode() not in texts
    assert str(start).encode() not in texts


def test_a_loss_that_is_not_finite_ends_training_with_a_message_and_no_model_but_the_curve_shows_how(
    tmp_path: Path, start: Path, shards: Path
) -> None:
    with pytest.raises(InputError, match=r"at step \d+ the loss is nan and .*; lower its learning_rate") as error:
        train(toy_job(tmp_path, start, shards, learning_rate=1e30, max_grad_norm=1e30, warmup_ratio=0))
    assert not (tmp_path / "model").exists()
    rows = read_tsv(tmp_path / "curve.tsv", made_by="train")
    assert f"at step {len(rows) + 1} " in str(error.value)
    assert rows and all(np.isfinite(float(row["loss"])) for row in rows)


def test_a_folder_without_a_model_and_too_long_texts_are_refused(tmp_path: Path, start: Path, shards: Path) -> None:
    with pytest.raises(InputError, match="reads 32 tokens; lower max_length from 64"):
        train(toy_job(tmp_path, start, shards, max_length=64))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no weights"):
        toy_job(tmp_path, tmp_path / "empty", shards)
    job = toy_job(tmp_path, start, shards)
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be loaded"):
        train(replace(job, start_model=tmp_path / "empty"))


def test_a_changed_shard_is_refused_before_training(tmp_path: Path, start: Path) -> None:
    shards = write_toy_shards(tmp_path / "shards", [toy_batch(toy_rows(4))])
    file = shards / "train-00000-of-00001.arrow"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(InputError, match="sha256"):
        toy_job(tmp_path, start, shards)


def test_retrieve_finds_what_brute_force_finds(start: Path) -> None:
    rows = toy_rows(30, seed=5)
    queries = [str(row["query"]) for row in rows[:7]]
    documents = [str(row["document"]) for row in rows]
    indices, scores = retrieve(start, queries, documents, 5, max_length=16)
    model = SentenceTransformer(str(start), device="cpu")
    cosine = model.encode(queries, normalize_embeddings=True) @ model.encode(documents, normalize_embeddings=True).T
    best = np.argsort(-cosine, axis=1, kind="stable")[:, :5]
    assert indices.dtype == np.int64 and scores.dtype == np.float32
    assert np.allclose(np.take_along_axis(cosine, indices, axis=1), scores, atol=1e-5)
    assert np.allclose(np.take_along_axis(cosine, best, axis=1), scores, atol=1e-5)


def test_a_static_model_can_be_trained_and_reads_as_many_tokens_as_others(tmp_path: Path, shards: Path) -> None:
    static = SentenceTransformer(modules=[StaticEmbedding(toy_tokenizer(), embedding_dim=16)], device="cpu")
    static.save(str(tmp_path / "static"), create_model_card=False)
    train(toy_job(tmp_path / "out", tmp_path / "static", shards, learning_rate=0.01, max_length=2))
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("static", "out/model"))
    assert any((before[key] != after[key]).any() for key in before)
    found, _ = retrieve(tmp_path / "out" / "model", ["w1 w2 w3"], ["w3 w1 w2", "w1 w2 w4"], 1)
    assert found.tolist() == [[1]]  # of the same first two tokens
    elsewhere = SentenceTransformer(str(tmp_path / "out/model"), device="cpu", local_files_only=True)
    cut, short = elsewhere.encode(["w3 w1 w2", "w3 w1"])
    np.testing.assert_array_equal(cut, short)


def test_a_static_model_s_temperature_falls_with_the_documents_of_the_batches_it_trains_on(
    tmp_path: Path, start: Path
) -> None:
    write_toy_static(start, tmp_path / "static", 0)
    batches = [
        toy_batch([row | {"domain": domain} for row in toy_rows(4)]) for domain in ("large", "small", "large", "large")
    ]
    shards = write_toy_shards(tmp_path / "shards", batches)
    manifest = Manifest.read(shards)
    manifest.model_copy(update={"documents": {"large": 7000 * 16, "small": 7000}}).write(shards)
    auto = {"temperature": "auto", "negatives_stand_for": "domain"}
    assert (
        toy_job(tmp_path / "large", tmp_path / "static", shards, domains=["large"], **auto).params.temperature == 0.035
    )
    job = toy_job(tmp_path / "both", tmp_path / "static", shards, **auto)
    assert job.params.temperature == pytest.approx(0.035 * 2 ** (1 / 17), abs=0.001)
    train(job)
    assert f"temperature: {job.params.temperature}" in (job.model / "README.md").read_text()
    trained = tmp_path / "both/model"
    for model, options in ((start, auto), (trained, auto), (tmp_path / "static", {"temperature": "auto"})):
        with pytest.raises(InputError, match="auto is for static models from scratch with negatives_stand_for: domain"):
            toy_job(tmp_path / "refused", model, shards, **options)
    manifest.model_copy(update={"documents": {}}).write(shards)
    with pytest.raises(
        InputError, match=r"does not say how many documents .large. has, which .*; run the stage 'pack' again"
    ):
        toy_job(tmp_path / "old", tmp_path / "static", shards, **auto)


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_checkpoint_is_removed_and_the_one_before_it_is_used(
    tmp_path: Path,
    start: Path,
    shards: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damaged: int,
) -> None:
    """With both damaged, training begins anew."""
    whole, killed = (toy_job(tmp_path / name, start, shards, steps=8) for name in ("whole", "killed"))
    train(whole)
    calls = die_at_the_sixth_step(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(killed)
    kept = sorted(killed.storage.local.glob("checkpoint-*/state.pt"))
    assert [int(file.parent.name.split("-")[1]) for file in kept] == [4, 5]
    for file in kept[-damaged:]:
        changed = bytearray(file.read_bytes())
        changed[len(changed) // 2] ^= 1
        file.write_bytes(bytes(changed))
    train(killed)
    assert len(calls) == 6 + {1: 4, 2: 8}[damaged]
    assert capsys.readouterr().err.count("damaged, and removed") == damaged
    assert content(tmp_path / "whole") == content(tmp_path / "killed")
    assert not [file for file in killed.scratch.rglob("*") if file.is_file()]


def test_a_run_resumed_after_its_last_step_writes_the_same_bytes(
    tmp_path: Path, start: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = (toy_job(tmp_path / name, start, shards, steps=4) for name in ("whole", "killed"))
    train(whole)
    monkeypatch.setattr(step_loop, "SAVE_EVERY_SECONDS", 0.0)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run, "settle_tokenizer", interrupted)
        train(killed)
    train(killed)
    assert content(tmp_path / "whole") == content(tmp_path / "killed")


def interrupted(folder: Path, max_length: int) -> None:
    raise KeyboardInterrupt


def test_disk_is_checked_before_training(
    tmp_path: Path, start: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(InputError, match=r"training a model of 0.0 GB needs about 0.0 GB of disk"):
        toy_job(tmp_path, start, shards)
