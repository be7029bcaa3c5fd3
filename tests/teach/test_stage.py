"""``python -m stages teach``: the same batches, with a teacher's scores of documents and hard negatives."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch.nn import Identity

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv
from batchwright.core.params import Language
from batchwright.core.paths import PAIRS
from batchwright.formats.pairs import scan_texts
from batchwright.formats.shards import SCORED_ANNOTATED_SCHEMA, SCORED_SCHEMA, SHARD_SCHEMA, ShardSet
from batchwright.retrievers import load_retriever
from batchwright.retrievers.common.words import WordIndex
from stages import teach
from stages.mine.rewrite import Mined, rewrite_shards, write_mined
from stages.negatives.choice import NONE
from stages.pack import stage as pack
from tests.helpers import annotate_shards, topic_pairs, tree, write_params
from tests.pack.corpora import prepare
from tests.pack.test_judge import save_cross_encoder
from tests.tiny_models import put_on_hub, save_bert
from tests.train.toys import describe, toy_batch, toy_job, toy_rows, write_toy_shards
from trainers.variants import build_learner, train

BEFORE, TAUGHT = Path("data/shards/contextual"), Path("data/shards/taught")
MODEL = "raw/models/reranker"
TEACHING = {"batches": "contextual", "model": MODEL, "max_length": 24, "batch_size": 7}
MINING = {"count": 3, "depth": 10}
RunTeach = Callable[..., str]


@pytest.fixture
def run_teach(workspace: Path) -> RunTeach:
    """Pack two domains with mined negatives; then teach as ``TEACHING`` says, but for ``changes``."""
    params = {"filter.mine": MINING, "pack.seeds": 2}
    write_params(workspace, params)
    prepare(birds=topic_pairs(40), fish=topic_pairs(30, seed=1))
    save_cross_encoder(Path(MODEL))
    pack.main("contextual")

    def run(language: str | None = "english", **changes: object) -> str:
        write_params(workspace, {**params, "base.language": language, "teach": {"taught": TEACHING | changes}})
        return teach.main("taught")

    return run


def rows_of(folder: Path) -> list[dict[str, object]]:
    shards = ShardSet.open(folder)
    return [row for number in range(len(shards)) for row in shards.batch(number).to_pylist()]


def test_batches_stay_and_each_row_has_the_scores_of_its_texts(run_teach: RunTeach) -> None:
    said = run_teach()
    model = CrossEncoder(MODEL, max_length=24)
    firsts = {}
    for seed in ("", "seed-2"):
        before, after = ShardSet.open(BEFORE / seed), ShardSet.open(TAUGHT / seed)
        after.verify()
        assert after.scored
        assert len(before) == len(after) > 0
        for number in range(len(before)):
            old, new = before.batch(number), after.batch(number)
            assert new.schema.equals(SCORED_SCHEMA, check_metadata=True)
            assert new.select(SHARD_SCHEMA.names).equals(old)
            rows = new.to_pylist()
            texts = [(row["query"], text) for row in rows for text in (row["document"], *row["negatives"])]
            scores = [score for row in rows for score in row["scores"]]
            np.testing.assert_allclose(model.predict(texts, activation_fn=Identity()), scores, rtol=1e-4, atol=1e-4)
            firsts |= {row["id"]: row["scores"][0] > max(row["scores"][1:]) for row in rows if row["negatives"]}
    assert after.manifest.models["teacher"]
    card = (TAUGHT / "README.md").read_text(encoding="utf-8")
    assert f"teacher: {after.manifest.models['teacher']}" in card and "| `scores` |" in card
    assert "| `scores` |" not in (BEFORE / "README.md").read_text(encoding="utf-8")
    counted = read_json(Path("results/teach/taught.json"), made_by="teach")
    assert counted["pairs"] - counted["without_negatives"] == len(firsts)
    assert counted["document_first"] == pytest.approx(sum(firsts.values()) / len(firsts), abs=1e-6)
    assert f"{counted['scores']:,} scores of {len(firsts)} pairs by '{MODEL}'" in said


def test_weights_and_metadata_stay_where_scores_come_and_go(run_teach: RunTeach) -> None:
    for seed in ("", "seed-2"):
        annotate_shards(BEFORE / seed)
    run_teach(model="raw/models", name="bm25")
    kept = [*SHARD_SCHEMA.names, "weight", "metadata"]
    before, after = (pa.Table.from_pylist(rows_of(folder)).select(kept) for folder in (BEFORE, TAUGHT))
    assert ShardSet.open(TAUGHT).batch(0).schema.equals(SCORED_ANNOTATED_SCHEMA, check_metadata=True)
    assert before.equals(after) and len(set(after["metadata"].to_pylist())) > 1


def test_a_trained_model_teaches_too(run_teach: RunTeach) -> None:
    shutil.copytree(save_bert(Path("made")), "models/first")
    describe(Path("models/first"))
    run_teach(model="models/first")
    vectors = SentenceTransformer("models/first")
    for row in rows_of(TAUGHT)[:20]:
        texts = [row["query"], row["document"], *row["negatives"]]
        query, *others = vectors.encode(texts, normalize_embeddings=True)
        np.testing.assert_allclose(row["scores"], np.stack(others) @ query, atol=1e-5)


def test_bm25_teaches_in_the_language_of_the_texts(run_teach: RunTeach, monkeypatch: pytest.MonkeyPatch) -> None:
    languages: list[str | None] = []

    def index(documents: list[str], language: Language | None) -> WordIndex:
        languages.append(language)
        return WordIndex(documents, language)

    monkeypatch.setattr(teach, "WordIndex", index)
    run_teach("german", model="raw/models", name="bm25")
    run_teach(model="raw/models", name="bm25")  # nothing is kept of the other language
    assert languages == ["german"] * 2 + ["english"] * 2  # of two domains
    assert ShardSet.open(TAUGHT).manifest.models["teacher"] == "bm25 english"
    rows = rows_of(TAUGHT)
    for domain in ("birds", "fish"):
        own = [row for row in rows if row["domain"] == domain]
        documents = sorted({text for row in own for text in (row["document"], *row["negatives"])})
        ranked, scores = WordIndex(documents).search([row["query"] for row in own], len(documents))
        for row, places, found in zip(own, ranked, scores, strict=True):
            of = {documents[place]: score for place, score in zip(places, found, strict=True) if place >= 0}
            expected = [of.get(text, 0) for text in (row["document"], *row["negatives"])]
            np.testing.assert_allclose(row["scores"], expected, rtol=1e-6)


def test_bm25_without_a_language_says_that_it_compares_whole_words(run_teach: RunTeach) -> None:
    run_teach(None, model="raw/models", name="bm25")
    assert ShardSet.open(TAUGHT).manifest.models["teacher"] == "bm25 of whole words"


def test_a_cross_encoder_on_the_hub_gives_the_same_bytes_as_its_folder(run_teach: RunTeach) -> None:
    run_teach()
    first = tree(TAUGHT)
    put_on_hub(shutil.copytree(MODEL, Path("copy")), "tests/reranker")
    run_teach(model="raw/models", name="tests/reranker")
    assert tree(TAUGHT) == first


@pytest.mark.parametrize("damaged", [False, True])
def test_a_killed_run_goes_on_and_only_changed_domains_are_scored_again(
    run_teach: RunTeach, damaged: bool, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(teach, "AT_ONCE", 16)
    run_teach()
    first = tree(TAUGHT)
    shutil.rmtree(".scratch/teach")
    score, calls = teach.Reranker.score, []

    def die_at_the_third(self, texts):
        calls.append(len(texts))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(self, texts)

    monkeypatch.setattr(teach.Reranker, "score", die_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_teach()
    if damaged:
        file = min(Path(".scratch/teach").rglob("*.npy"))
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    run_teach()
    assert len(calls) == 3 + 3 + damaged, "3 parts of birds, 2 of fish; 2 were kept"
    assert ("damaged; this part of the work is done again" in capsys.readouterr().err) == damaged
    assert tree(TAUGHT) == first
    run_teach()
    assert len(calls) == 6 + damaged
    prepare(birds=topic_pairs(40), fish=topic_pairs(29, seed=1))
    pack.main("contextual")
    run_teach()
    assert len(calls) == 8 + damaged, "birds have not changed"


def test_a_student_learns_from_the_scores(run_teach: RunTeach, tmp_path: Path) -> None:
    run_teach()
    start = save_bert(tmp_path / "made")
    options = {"weight": None, "temperature": 2}
    job = toy_job(tmp_path / "job", start, TAUGHT, hard_negatives=3, epochs=2, distill=options, learning_rate=1e-2)
    train(job)
    losses = [float(row["loss"]) for row in read_tsv(job.curve, made_by="train")]
    assert np.mean(losses[-4:]) < 0.8 * np.mean(losses[:4])


def test_other_negatives_lose_the_scores(run_teach: RunTeach) -> None:
    run_teach()
    shards = ShardSet.open(TAUGHT)
    mined = {name: _nothing_mined(name, pairs) for name, pairs in (("birds", 40), ("fish", 30))}
    written = rewrite_shards(shards, mined, Path("other"))
    shards.manifest.model_copy(update={"format": 2, "shards": written}).write(Path("other"))
    assert ShardSet.open(Path("other")).batch(0).schema.equals(SHARD_SCHEMA, check_metadata=True)


def _nothing_mined(domain: str, pairs: int) -> Mined:
    folder = Path("mined", domain)
    folder.mkdir(parents=True)
    write_mined(folder, np.full((pairs, 1), NONE, np.int32), pa.array([""], pa.large_string()))
    return Mined(np.array([*scan_texts(PAIRS, domain, "id", "train")], "S32"), folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "raw/models/nothing"}, "model 'raw/models/nothing': no such folder"),
        ({"model": "raw/models/bert"}, "is not a cross-encoder but SentenceTransformer; name a reranker"),
        ({"model": "bm25"}, "'bm25' is no folder, which DVC could watch; write 'model: raw/models' and 'name: bm25'"),
        ({"name": "bm25"}, "'name: bm25' counts instead of '.*'; write 'model: raw/models', or remove 'name'"),
        ({"max_length": 4096}, "reads 512 tokens; lower max_length"),
        ({"batches": "nothing"}, "data/shards/nothing/manifest.json: no such file"),
        ({"modl": "x"}, "unknown parameter 'teach.taught.modl'; did you mean 'model'"),
    ],
)
def test_what_cannot_be_taught_is_refused(run_teach: RunTeach, change, message) -> None:
    shutil.copytree(save_bert(Path("made")), "raw/models/bert")
    with pytest.raises(InputError, match=message):
        run_teach(**change)
    assert not TAUGHT.exists()


def test_batches_without_hard_negatives_are_refused(workspace: Path) -> None:
    prepare(birds=topic_pairs(20))
    pack.main("random")
    write_params(workspace, {"teach": {"taught": TEACHING | {"batches": "random"}}})
    with pytest.raises(InputError, match=r"teach.taught: the pairs in data/shards/random have no hard negatives"):
        teach.main("taught")


@pytest.mark.parametrize("variant", ["biencoder", "cde", "xtr"])
def test_given_documents_are_scored_as_a_search_over_them_would(tmp_path: Path, variant: str) -> None:
    start = save_bert(tmp_path / "made")
    folder = start if variant == "biencoder" else _untrained(tmp_path, start, variant)
    describe(folder)
    retriever = load_retriever(folder)
    pairs = topic_pairs(6)
    queries, documents = ([pair[side] for pair in pairs] for side in (0, 1))
    own = [[documents[row - 1], documents[row]] for row in range(5)]
    found = retriever.score(queries[:5], own).reshape(5, 2)
    texts = list(dict.fromkeys(text for given in own for text in given))  # CDE draws its context from these, in order
    every = {"tokens": 10_000} if variant == "xtr" else {}
    ranked, scores = retriever.index(texts).search(queries[:5], 6, **every)
    for row in range(5):
        of = dict(zip(ranked[row].tolist(), scores[row].tolist(), strict=True))
        assert found[row] == pytest.approx([of[texts.index(text)] for text in own[row]], abs=1e-5)


def _untrained(folder: Path, start: Path, variant: str) -> Path:
    """A model as it is before the first step."""
    shards = write_toy_shards(folder / "shards", [toy_batch(toy_rows(4))])
    job = toy_job(folder / "job", start, shards, variant)
    (model := folder / "model").mkdir()
    build_learner(job).save(model)
    return model
