"""A cross-encoder judges the cells in doubt, and no others."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from torch.nn import Identity
from transformers import BertConfig, BertForSequenceClassification

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.formats.models import model_hash
from batchwright.formats.negatives import NO_PAIR, KnownPositives, Negatives, judged
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import ShardSet, unpack_mask
from stages.filter import stage as judge_pairs
from tests.helpers import install_another, planted_vectors, run_python, tree, write_params
from tests.pack.corpora import RunPack
from tests.tiny_models import VOCABULARY, WIDTH, save_bert, word_pieces

OURS = Path("data/shards/contextual")
BELOW, ABOVE, MARGIN, LIKENESS = 0.25, 0.125, 0.25, 0.5
JUDGE = {
    "model": "raw/models/judge",
    "max_length": 24,
    "batch_size": 7,
    "below": BELOW,
    "above": ABOVE,
    "margin": MARGIN,
}


def save_cross_encoder(folder: Path, labels: int = 1) -> None:
    """BERT with a classifier, as ms-marco-MiniLM-L6-v2 is built; its weights are large, so that scores differ."""
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=labels,
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    word_pieces().save_pretrained(folder)


@pytest.fixture
def with_judge(corpus: Path) -> Path:
    """The corpus with a judge beside it, a limit of likeness, and judgements of some cells."""
    save_cross_encoder(Path("raw/models/judge"))
    birds = read_pairs(Path("data/pairs"), "birds", "train").to_pylist()
    generator = np.random.default_rng(0)
    rows = [
        {"query": birds[i]["query"], "document": birds[j]["document"], "label": int(generator.integers(2))}
        for i, j in generator.integers(80, size=(900, 2)).tolist()
    ]
    Path("raw/judgements").mkdir(parents=True, exist_ok=True)
    Path("raw/judgements/said.jsonl").write_text("\n".join(map(json.dumps, rows)))
    changes = {"filter.judgements": ["raw/judgements/said.jsonl"], "filter.likeness": LIKENESS, "pack.judge": JUDGE}
    write_params(corpus, changes)
    judge_pairs.main()
    return corpus


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, str]]]:
    """Return a list that receives what cross-encoders are asked."""
    asked: list[list[tuple[str, str]]] = []
    predict = CrossEncoder.predict

    def watched(self, inputs, **settings):
        asked.append(inputs)
        return predict(self, inputs, **settings)

    monkeypatch.setattr(CrossEncoder, "predict", watched)
    return asked


def doubtful(negatives: Negatives, batch: dict[str, list[str]], rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells are in doubt, and the mask but for these, by plain loops."""
    queries, documents = (planted_vectors(batch[side]).astype(float) for side in ("query", "document"))
    added = (queries + documents) / np.linalg.norm(queries + documents, axis=1, keepdims=True)
    asked, mask = np.zeros((2, len(rows), len(rows)), bool)
    known, irrelevant = KnownPositives(negatives), judged(negatives, relevant=False)
    for i, j in np.ndindex(asked.shape):
        cell = negatives.query_class[[rows[i]]], negatives.document_class[[rows[j]]]
        likeness, high = added[i] @ added[j], queries[i] @ documents[j] >= queries[i] @ documents[i] - 0.125
        if known.contains(*cell)[0]:
            mask[i, j] = i != j
        elif not irrelevant.contains(*cell)[0]:
            asked[i, j] = high and LIKENESS - BELOW <= likeness < LIKENESS + ABOVE
            mask[i, j] = high and likeness >= LIKENESS and not asked[i, j]
    return asked, mask


def test_only_cells_in_doubt_are_scored_and_its_word_counts(
    with_judge: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        asked = recorded(patch)
        run_pack("contextual")
    scored = sorted(cell for each in asked for cell in each)
    model = CrossEncoder("raw/models/judge", max_length=24)

    def score(query: str, document: str) -> float:
        return float(model.predict((query, document), activation_fn=Identity()))

    expected, counts = [], {"asked": 0, "masked": 0}
    shards, table = ShardSet.open(OURS), read_tsv(Path("results/pack/contextual.tsv"), made_by="pack")
    for number in range(len(shards)):
        batch = shards.batch(number).to_pydict()
        ids = read_pairs(Path("data/pairs"), domain := batch["domain"][0], "train")["id"].to_pylist()
        rows = [ids.index(name) for name in batch["id"]]
        in_doubt, mask = doubtful(Negatives.read(Path("data/negatives"), domain, len(ids)), batch, rows)
        for i in np.flatnonzero(in_doubt.any(axis=1)):
            own = score(batch["query"][i], batch["document"][i])
            expected.append((batch["query"][i], batch["document"][i]))
            for j in np.flatnonzero(in_doubt[i]):
                expected.append((batch["query"][i], batch["document"][j]))
                mask[i, j] = score(batch["query"][i], batch["document"][j]) >= own - MARGIN
        np.testing.assert_array_equal(unpack_mask(batch["mask"], 8), mask)
        found = int(in_doubt.sum()), int((in_doubt & mask).sum())
        assert (int(table[number]["judge_asked"]), int(table[number]["judge_masked"])) == found
        counts["asked"] += found[0]
        counts["masked"] += found[1]
    assert scored == sorted(expected)
    assert 20 < counts["masked"] < counts["asked"] - 20
    summary = read_json(Path("results/pack/contextual.json"), made_by="pack")
    for named in (summary, *summary["domains"].values()):
        assert 0 < named["judge_masked"] < named["judge_asked"]
    assert (summary["judge_asked"], summary["judge_masked"]) == (counts["asked"], counts["masked"])
    assert shards.manifest.models["judge"] == model_hash(Path("raw/models/judge"))


def test_the_number_of_workers_does_not_change_a_byte(
    with_judge: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")
    run_pack("random")
    first = tree(Path("data/shards")), tree(Path("results"))
    shutil.rmtree(".scratch")
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "4")
    run_pack("random")
    assert (tree(Path("data/shards")), tree(Path("results"))) == first


def test_other_libraries_ask_the_judge_again(
    with_judge: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")
    run_pack("random")
    asked = recorded(monkeypatch)
    run_pack("random")
    assert not asked
    install_another("torch", monkeypatch)
    run_pack("random")
    assert asked


def test_nothing_is_in_doubt_where_a_domain_has_no_limit(
    with_judge: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_params(with_judge, {"filter.likeness": float(NO_PAIR), "pack.judge": JUDGE})
    judge_pairs.main()
    asked = recorded(monkeypatch)
    run_pack("random")
    assert asked == []
    assert read_json(Path("results/pack/random.json"), made_by="pack")["judge_asked"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter.likeness": None}, r"pack\.judge: is asked about pairs near the limit .*set it to auto or a number"),
        ({"pack.judge": JUDGE | {"model": "raw/nothing/at/all"}}, r"model 'raw/nothing/at/all': no such folder"),
        (
            {"pack.judge": JUDGE | {"model": "raw/models/bert"}},
            r"model 'raw/models/bert': is not a cross-encoder but Sent.*; name a",
        ),
        (
            {"pack.judge": JUDGE | {"model": "raw/models/backbone"}},
            r"'raw/models/backbone': is not a cross-encoder but BertModel",
        ),
        (
            {"pack.judge": JUDGE | {"model": "raw/models/two"}},
            r"model 'raw/models/two': gives 2 scores; name one that gives one",
        ),
        (
            {"pack.judge": JUDGE | {"max_length": 600}},
            r"pack\.judge: model 'raw/models/judge': reads 512 tokens; lower max_length from \d+ to at most 512",
        ),
        ({"pack.judge": JUDGE | {"below": 0}}, r"parameter 'pack\.judge\.below': .*greater than 0"),
    ],
)
def test_what_cannot_judge_is_refused(
    with_judge: Path, run_pack: RunPack, changes: dict[str, object], message: str
) -> None:
    save_cross_encoder(Path("raw/models/two"), labels=2)
    save_bert(Path("made")).rename("raw/models/bert")
    Path("made/backbone").rename("raw/models/backbone")
    write_params(with_judge, {"filter.likeness": LIKENESS, "pack.judge": JUDGE} | changes)
    judge_pairs.main()
    with pytest.raises(InputError, match=message):
        run_pack("random")
    assert not Path("data/shards").exists()


def test_packing_without_a_judge_needs_no_torch(corpus: Path) -> None:
    script = "import sys; from stages.pack.stage import main; main('random'); print({'torch'} & set(sys.modules))"
    done = run_python("-c", script, cwd=corpus)
    assert (done.returncode, done.stdout) == (0, "set()\n")
