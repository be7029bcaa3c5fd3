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
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.core.normal_form import normal_form
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors
from batchwright.retrievers.xtr.rank import search_tokens
from experiments.gpu import carry, evaluate, run
from experiments.gpu.arms import READINGS, STARTS, TOKENS
from experiments.gpu.corpus import SAME
from experiments.gpu.evaluate import ndcg, token_scores
from experiments.gpu.folder import Carried
from experiments.gpu.results import summarise
from tests.helpers import run_python

WITHOUT = """
import runpy, sys
for name in ("ray", "faiss", "apache_beam", "dvc", "ir_measures"):
    sys.modules[name] = None
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Runs a module as a command, without the packages that a GPU machine may lack."""
COUNTS = {"medquad": 90, "nl2bash": 60, "fever": 30}
LINE = ["--small", "--pairs", "64", "--turns", "2", "--evaluations", "2"]


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
    _run("run", str(carried), "table.tsv", *LINE, "--temperatures", "random-cde=.1", folder=folder, programs=warm)
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


def test_pretrained_and_token_arms_train_and_are_compared_likewise(carried: Path, warm: Path) -> None:
    folder = carried.parent
    _run("pretraining", str(carried), "starts", "--small", "--steps", "3", "--batch", "8", folder=folder, programs=warm)
    started = [read_json(folder / "starts" / name / "pretraining/decoder.json", made_by="it") for name in STARTS]
    assert [each["steps"] for each in started] == [3, 3, 3]
    assert [each["decoder"] and each["decoder"]["kind"] for each in started] == [None, "weak", "retromae"]
    line = [*LINE, "--starts", "starts", "--xtr", "k=40", "--arms", *STARTS, *TOKENS]
    _run("run", str(carried), "starts.tsv", *line, folder=folder, programs=warm)
    rows = read_tsv(folder / "starts.tsv", made_by="experiments.gpu.run")
    last = {(row["arm"], row["context"]) for row in rows if row["pairs"] == "64"}
    assert last == {(name, "none") for name in STARTS} | {(name, read) for name in TOKENS for read in READINGS["xtr"]}
    compared = read_tsv(folder / "starts-differences.tsv", made_by="experiments.gpu.run")
    assert [row["nDCG@10"] for row in compared] == [
        "seed (none) - mlm (none)",
        "retromae (none) - mlm (none)",
        "xtr (retrieved) - colbert (all)",
        "xtr (retrieved) - colbert (retrieved)",
        "xtr (all) - colbert (all)",
    ]


def _run(module: str, *line: str, folder: Path, programs: Path) -> None:
    command = ("-c", WITHOUT, f"experiments.gpu.{module}", *line)
    done = run_python(*command, cwd=folder, programs=programs, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr


def test_an_arm_without_its_pre_trained_model_is_named(carried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["run", str(carried), str(carried.parent / "none.tsv"), "--small", "--starts", "nowhere", "--arms", "seed"]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(InputError, match="--starts nowhere: no model 'seed' there"):
        run.main()


def test_tokens_score_as_in_search(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    queries, documents = (_tokens(rng, count) for count in (7, 40))
    lengths = [np.array([len(each) for each in side]) for side in (queries, documents)]
    index = TokenIndex.build(np.concatenate(documents), lengths[1], "m")
    asked = TokenVectors(np.concatenate(queries), np.zeros(lengths[0].sum(), np.int64), lengths[0])
    padded = [
        pad_sequence([torch.from_numpy(each) for each in side], batch_first=True) for side in (queries, documents)
    ]
    for retrieved, at_once in ((12, 1 << 27), (12, 1), (None, 1 << 27)):
        monkeypatch.setattr(evaluate, "SIMILARITIES", at_once)
        scores = token_scores(*padded, retrieved).numpy() / lengths[0][:, None]
        found, expected = search_tokens(index, asked, 40, tokens=retrieved or 10**6)
        np.testing.assert_allclose(np.take_along_axis(scores, found, axis=1), expected, atol=1e-6)


def _tokens(rng: np.random.Generator, count: int) -> list[NDArray[np.float32]]:
    """Unit vectors ``(l, 8)`` of the tokens of texts, one to five of each."""
    drawn = [rng.normal(size=(rng.integers(1, 6), 8)).astype(np.float32) for _ in range(count)]
    return [each / np.linalg.norm(each, axis=1, keepdims=True) for each in drawn]


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
