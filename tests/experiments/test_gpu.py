"""``experiments.gpu`` in its small form on the CPU: what is carried, and that all arms train and are compared."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from ir_measures import nDCG

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.core.normal_form import normal_form
from experiments.gpu import carry, run
from experiments.gpu.corpus import SAME
from experiments.gpu.evaluate import ndcg
from experiments.gpu.folder import Carried
from experiments.gpu.results import summarise
from tests.helpers import run_python

WITHOUT = """
import runpy, sys
for name in ("ray", "faiss", "apache_beam", "dvc", "ir_measures"):
    sys.modules[name] = None
sys.argv = ["run", *sys.argv[1:]]
runpy.run_module("experiments.gpu.run", run_name="__main__", alter_sys=True)
"""
COUNTS = {"medquad": 90, "nl2bash": 60, "fever": 30}
LINE = ["--small", "--pairs", "64", "--turns", "2", "--evaluations", "2", "--temperatures", "random-cde=.1"]


def _pair(name: str, number: int) -> Mapping[str, str]:
    words = f"{name} word{number % 7} word{number % 11}"
    return {"query": f"what is {words} number {number}", "document": f"answer to {words}: {number}", "domain": name}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sets, and a BEIR folder that holds a document of one of them."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "pairs").mkdir()
    for name, count in COUNTS.items():
        rows = [_pair(name, number) for number in range(count)]
        pq.write_table(pa.Table.from_pylist(rows), folder / "pairs" / f"{name}.parquet")
    beir = folder / "beir" / "science"
    (beir / "qrels").mkdir(parents=True)
    texts = [_pair("medquad", 0)["document"], *(f"paper on subject {number}" for number in range(12))]
    files = {"corpus": [("d", text) for text in texts], "queries": [("q", f"subject {number}") for number in range(6)]}
    for file, rows in files.items():
        lines = [json.dumps({"_id": f"{side}{place}", "text": text}) for place, (side, text) in enumerate(rows)]
        (beir / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    judged = [f"q{number}\td{number + 1}\t{1 + number % 2}" for number in range(6)]
    (beir / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    return folder


@pytest.fixture(scope="module")
def carried(sources: Path) -> Path:
    output = sources / "carried"
    line = ["carry", str(sources / "pairs"), str(sources / "beir"), str(output), "--small"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", line)
        carry.main()
    return output


def _key(text: str) -> str:
    return normal_form(text)[:SAME]


def test_no_test_text_is_trained_on(carried: Path) -> None:
    read = Carried.read(carried)
    trained = {_key(read.texts[number]) for number in np.concatenate([read.queries, read.documents])}
    kinds = {test.kind for test in read.tests}
    assert kinds == {"held out", "unseen", "beir"}
    for test in read.tests:
        answers = test.documents[test.relevant[:, 1]] if test.kind == "held out" else test.documents
        asked = np.concatenate([test.queries, answers])
        assert trained.isdisjoint(_key(read.texts[number]) for number in asked)
    assert _key(_pair("medquad", 0)["document"]) not in trained
    assert read.about["pairs_dropped_as_seen_in_tests"] >= 1
    assert "fever" not in read.domains


def test_both_policies_take_as_many_batches_of_each_domain(carried: Path) -> None:
    read = Carried.read(carried)
    counts = []
    for order in read.orders.values():
        domains = read.domain[order.rows]
        assert (domains == domains[:, :1]).all()
        counts.append(np.bincount(domains[:, 0]).tolist())
        mask = read.masks().of(order, 0)
        rows = order.rows[0]
        same = read.document_class[rows][:, None] == read.document_class[rows]
        np.fill_diagonal(same, False)
        assert mask[same].all() and not mask.diagonal().any()
    assert abs(np.subtract(*counts)).max() <= 1  # the last epoch may be cut
    assert not np.array_equal(*(order.rows for order in read.orders.values()))


def test_all_arms_train_and_are_compared_without_the_packages_that_a_gpu_machine_may_lack(
    carried: Path, warm: Path
) -> None:
    folder = carried.parent
    done = run_python(
        "-c", WITHOUT, str(carried), "table.tsv", *LINE, cwd=folder, programs=warm, CUDA_VISIBLE_DEVICES=""
    )
    assert done.returncode == 0, done.stderr
    rows = read_tsv(folder / "table.tsv", made_by="experiments.gpu.run")
    last = [(row["arm"], row["context"], row["kind"]) for row in rows if row["pairs"] == "64" and row["set"] == "all"]
    kinds = ("held out", "unseen", "beir")
    readings = {"biencoder": ("none",), "cde": ("own", "another", "random", "none")}
    assert sorted(last) == sorted(
        (f"{policy}-{variant}", reading, kind)
        for policy in ("random", "contextual")
        for variant, contexts in readings.items()
        for reading in contexts
        for kind in kinds
    )
    assert {row["pairs"] for row in rows} == {"0", "32", "64"}
    curve = read_tsv(folder / "table-curve.tsv", made_by="experiments.gpu.run")
    assert len(curve) == 8 and all(0 < float(row["loss"]) < 5 for row in curve)
    said = "\n".join(summarise(folder / "table.npz"))
    assert "64 pairs: contextual-cde (own) - contextual-cde (none), " in said
    assert len(read_tsv(folder / "table-differences.tsv", made_by="experiments.gpu.run")) == 11


def test_too_little_time_is_said_before_training(carried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["run", str(carried), str(carried.parent / "short.tsv"), "--small", "--minutes", "0.01", "--arms"]
    monkeypatch.setattr(sys, "argv", [*line, "random-biencoder"])
    with pytest.raises(InputError, match="minutes are too short"):
        run.main()


def test_ndcg_is_that_of_ir_measures() -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.random((5, 30)))
    cells = rng.permutation(150)[:20]
    relevant = np.stack([cells // 30, cells % 30, rng.integers(1, 4, 20)], axis=1)
    found = ndcg(scores.topk(10).indices, torch.from_numpy(relevant), 5, 30)
    qrels = [ir_measures.Qrel(str(q), str(d), int(r)) for q, d, r in relevant]
    ranked = [ir_measures.ScoredDoc(str(q), str(d), float(scores[q, d])) for q in range(5) for d in range(30)]
    expected = {each.query_id: each.value for each in ir_measures.iter_calc([nDCG @ 10], qrels, ranked)}
    assert {str(q): pytest.approx(value, abs=1e-6) for q, value in enumerate(found.tolist())} == expected
