"""What stages think that they will take is what they take, up to three times as much, and at least nine tenths."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from batchwright.by_domain import LARGE, kept_map, memory
from batchwright.core.paths import CLUSTERS, NEGATIVES
from batchwright.core.runtime import scratch
from batchwright.core.spill import SpilledRows
from batchwright.retrievers.common.search import search, search_size
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from stages.pack.params import PackParams
from stages.pack.room import memory_of
from stages.scoring import room
from stages.scoring.bm25 import retrieve
from stages.scoring.collection import Collection, Text
from tests.helpers import plant_vectors, topic_pairs, write_pairs, write_params
from tests.pretraining.toys import ENCODER, PARAMS
from trainers.pretraining.corpus import train_vocabulary
from trainers.pretraining.folder import build_model
from trainers.pretraining.params import PretrainParams
from trainers.pretraining.room import model_size


def peak(work: Callable[[], object]) -> int:
    """Bytes that Python and numpy take at most while this is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_of_the_files_of_filter_and_cluster(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pairs("birds", topic_pairs(3000))
    plant_vectors()
    write_params(workspace, {"filter.mine": {"count": 3, "depth": 20}, "cluster.draws": 2})
    for stage, name, output in ((judge, "filter", NEGATIVES), (cluster, "cluster", CLUSTERS)):
        asked: dict[Path, float] = {}
        monkeypatch.setattr(f"stages.{name}.room.check_disk", lambda needed, _, asked=asked: asked.update(needed))
        stage.main()
        written = sum(file.stat().st_size for file in output.rglob("*.npy"))
        assert 0.9 * written < asked[output] < 2 * written
        assert asked[scratch(name)] == asked[output]
        stage.main()
        assert asked[scratch(name)] < 0.1 * written, "what was done before has its room"


@pytest.mark.parametrize(
    ("changes", "large"),
    [({}, LARGE), ({"filter.consistency": 400}, 2000), ({"filter.mine": {"count": 1, "depth": 90}}, 2000)],
)
def test_of_what_the_filter_spills(
    changes: dict[str, Any], large: int, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")  # parts are done here, where what they save is counted
    for module in ("batchwright.by_domain.domains", "stages.filter.room"):
        monkeypatch.setattr(f"{module}.LARGE", large)
    write_params(workspace, changes)
    write_pairs("birds", [(f"topic1 {number}", f"topic1 {number} {'word ' * 60}{number}") for number in range(3000)])
    plant_vectors()
    asked, spilled = list[float](), list[int]()
    monkeypatch.setattr(memory, "check_disk", lambda needed, _: asked.extend(needed.values()))
    add, save = SpilledRows.add, kept_map._save

    def counted(rows: SpilledRows, block: NDArray[Any]) -> None:
        spilled.append(block.nbytes)
        add(rows, block)

    def saved(file: Path, value: object) -> None:
        save(file, value)
        spilled.append(file.stat().st_size if file.suffix != ".item" else 0)

    monkeypatch.setattr(SpilledRows, "add", counted)
    monkeypatch.setattr(kept_map, "_save", saved)
    judge.main()
    assert 0.9 * sum(spilled) < asked[0] < 3 * sum(spilled)


@pytest.mark.parametrize("surrogate", ["planted", "other"])
def test_of_the_cells_of_a_batch(surrogate: str, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pairs("birds", topic_pairs(4000))
    for name in {"planted", surrogate}:
        plant_vectors(name)
    write_params(workspace, {"pack.batch_size": 2000, "filter.vectors": surrogate})
    judge.main()
    cluster.main()
    asked: list[float] = []
    monkeypatch.setattr(memory, "check_memory", lambda needed, _: asked.append(needed))
    taken = peak(lambda: pack.main("random"))
    assert 0.9 * taken < asked[0] - memory.BASE < 3 * taken


@pytest.mark.parametrize(
    ("changes", "pairs", "makers"),
    [
        ({}, 50_000, 4),
        ({"epochs": 1}, 50_000, 2),
        ({"small_domains": "drop"}, 999, 0),
        ({"epochs": 100}, LARGE - 1, 1),
    ],
)
def test_of_the_cells_in_all_processes(
    changes: dict[str, Any], pairs: int, makers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"batch_size": 1000, "epochs": 2, "batches_per_shard": 25, **changes}
    monkeypatch.setattr("stages.pack.room.pairs_of", lambda _: pairs)
    monkeypatch.setattr("stages.pack.room.of_pairs", lambda _: 0.0)
    found = memory_of(["birds"], PackParams.model_validate(given), 1, processes=4)
    assert 15e6 * makers <= found <= 30e6 * makers


@pytest.mark.parametrize(("queries", "documents"), [(1500, 3000), (300, 40_000)])
def test_of_a_search(queries: int, documents: int) -> None:
    rng = np.random.default_rng(0)
    asking, asked = (rng.normal(size=(count, 4)).astype(np.float32) for count in (queries, documents))
    taken = peak(lambda: search(asking, asked, 50))
    assert 0.9 * taken < search_size(queries, documents, 50) < 2 * taken


def test_of_bm25(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{number}" for number in rng.zipf(1.3, 80) % 5000) for _ in range(2000)]
    documents = [Text(id=str(number), text=text, domain="a") for number, text in enumerate(texts)]
    asked: list[float] = []
    monkeypatch.setattr(room, "check_memory", lambda needed, _: asked.append(needed))
    room.check_words([Collection(name="a", queries=documents[:10], documents=documents, relevant={})])
    taken = peak(lambda: retrieve(texts[:10], texts, 20))
    assert 0.9 * taken < asked[0] < 3 * taken


def test_words_may_be_no_unicode() -> None:
    documents = [Text(id="1", text="a \ud800 b", domain="a")]
    room.check_words([Collection(name="a", queries=[], documents=documents, relevant={})])


@pytest.mark.parametrize("decoder", [None, {"kind": "weak"}, {"kind": "retromae"}])
def test_of_a_model_to_pretrain(decoder: dict[str, Any] | None, tmp_path: Path) -> None:
    params = PretrainParams.model_validate(PARAMS | {"encoder": ENCODER | {"vocab_size": 120}, "decoder": decoder})
    words = [[" ".join(f"w{number}" for number in range(500))]]
    tokenizer = train_vocabulary(lambda: words, 120)
    model = build_model(params, None, tokenizer, torch.zeros(0)).model
    assert model_size(params, None) == (4 * sum(each.numel() for each in model.parameters()), len(tokenizer))
    model.encoder.save_pretrained(tmp_path)
    started = PretrainParams.model_validate(params.model_dump() | {"encoder": {"kind": "start", "model": "it"}})
    assert model_size(started, tmp_path) == model_size(params, None)
