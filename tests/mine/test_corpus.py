"""``python -m stages mine`` with a corpus and several miners, checked against a walk down all rankings."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from batchwright.by_domain import domains
from batchwright.core.files import read_json
from batchwright.core.fingerprint import content_id
from batchwright.core.normal_form import normal_form
from batchwright.formats import vectors as store
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import PAIRS_SCHEMA, InMemory, pairs_file, read_pairs, write_table
from batchwright.formats.shards import ShardSet
from batchwright.formats.vectors import VectorStore
from batchwright.retrievers.common.words import WordIndex
from stages.mine import search
from stages.mine import stage as mine
from stages.pack import stage as pack
from tests.helpers import WORDS, topic_pairs, tree, write_params
from tests.pack.corpora import prepare
from tests.tiny_models import save_bert
from tests.train.toys import describe, retrieve

ROUND = Path("data/shards/again")
MINING = {"model": "models/first", "count": 3, "depth": 12}
Mine = Callable[..., dict[str, int]]
LONG = " ".join(["topic0", *WORDS])
BIRDS = [*topic_pairs(39), ("topic0 asked at length", LONG)]
CORPUS = sorted((document for _, document in topic_pairs(60, seed=7)), key=lambda text: content_id("birds", "", text))


def write_corpus(domain: str, documents: list[str]) -> None:
    rows = [
        {"id": content_id(domain, "", text), "query": "", "document": text, "domain": domain, "split": "train"}
        for text in documents
    ]
    table = pa.Table.from_pylist([{**row, "negatives": []} for row in sorted(rows, key=lambda row: row["id"])])
    write_table(pairs_file(Path("data/corpus"), domain), table, PAIRS_SCHEMA)


@pytest.fixture
def run_mine(workspace: Path) -> Mine:
    prepare(birds=BIRDS, fish=topic_pairs(30, seed=1))
    for folder in ("models/first", "models/start/second"):
        shutil.copytree(save_bert(Path("made")), folder)
        describe(Path(folder), max_length=16 if folder == "models/first" else 3)
    write_params(workspace)
    pack.main("contextual")

    def run(**settings: Any) -> dict[str, int]:
        write_params(workspace, {"mine": {"again": MINING | settings}})
        mine.main("again")
        found: dict[str, int] = read_json(Path("results/mine/again.json"), made_by="mine")
        return found

    return run


def mined(domain: str) -> dict[str, list[str]]:
    shards = ShardSet.open(ROUND)
    rows = (row for number in range(len(shards)) for row in shards.batch(number).to_pylist())
    return {row["id"]: row["negatives"] for row in rows if row["domain"] == domain}


def by_hand(domain: str, corpus: list[str], miners: list[str], share: float = 1e9) -> dict[str, list[str]]:
    pairs = read_pairs(Path("data/pairs"), domain)
    own, queries = pairs["document"].to_pylist(), pairs["query"].to_pylist()
    negatives = Negatives.read(Path("data/negatives"), domain, len(pairs))
    vectors = VectorStore.open(Path("data/vectors/planted")).of(domain).of_pairs([InMemory(pairs.to_batches())])
    surrogate = vectors.queries(slice(None)) @ vectors.documents(slice(None)).T
    unique: dict[str, str] = {}
    for text in own + corpus:
        unique.setdefault(normal_form(text), text)
    documents = list(unique.values())
    found: dict[str, list[str]] = {}
    rankings = [
        WordIndex(documents).search(queries, len(documents))
        if miner == "bm25"
        else retrieve(Path(miner), queries, documents, len(documents))
        for miner in miners
    ]
    for query, pair in enumerate(pairs["id"].to_pylist()):
        offered, refused = [], set()
        for miner, (ranked, scores) in enumerate(rankings):
            there = {
                documents[row]: float(score)
                for row, score in zip(ranked[query], scores[query], strict=True)
                if row >= 0
            }
            others = [text for text in there if text != own[query]]
            if own[query] in list(there)[:13]:
                refused |= {text for text in others[:12] if there[text] > there[own[query]] * share}
            elif share < 1:
                continue
            offered += [(rank, miner, text) for rank, text in enumerate(others[:12])]
        fit = [
            text
            for _, _, text in sorted(offered)
            if text not in refused
            and (text not in own or surrogate[query, own.index(text)] < negatives.thresholds[query])
        ]
        found[pair] = list(dict.fromkeys(fit))[:3]
    return found


def test_documents_of_the_corpus_are_mined_but_no_positive_in_other_spelling(run_mine: Mine) -> None:
    spelt = [f"{document.upper()}!" for _, document in BIRDS[:20]]
    write_corpus("birds", [*CORPUS, *spelt, BIRDS[30][1], f"{LONG} again"])
    counted = run_mine()
    assert mined("birds") == by_hand("birds", CORPUS, ["models/first"])
    assert mined("fish") == by_hand("fish", [], ["models/first"])
    texts = [text for texts in mined("birds").values() for text in texts]
    assert counted["from_corpus"] == sum(text in CORPUS for text in texts) > 20
    assert not set(texts) & {*spelt, f"{LONG} again"}


@pytest.mark.parametrize("join", [[], ["bm25"], ["bm25", "models/start/second"]])
def test_miners_take_turns_and_each_has_limits_of_its_own(run_mine: Mine, join: list[str]) -> None:
    write_corpus("birds", CORPUS)
    run_mine(join=join, max_share=0.95)
    assert mined("birds") == by_hand("birds", CORPUS, ["models/first", *join], share=0.95)
    models = ShardSet.open(ROUND).manifest.models
    assert [name for name in models if name.startswith("miner")] == ["miner", *(f"miner {name}" for name in join)]


def test_bm25_mines_alone(run_mine: Mine) -> None:
    write_corpus("birds", CORPUS)
    run_mine(model="raw/models", name="bm25", join=["bm25"])
    assert mined("birds") == by_hand("birds", CORPUS, ["bm25"])
    models = ShardSet.open(ROUND).manifest.models
    assert {name: said for name, said in models.items() if name.startswith("miner")} == {"miner": "bm25 english"}


@pytest.mark.parametrize("sample", [False, True])
def test_blocks_and_parts_do_not_change_what_is_mined(
    run_mine: Mine, sample: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpus("birds", CORPUS)
    run_mine(sample=sample)
    whole = tree(ROUND)
    shutil.rmtree(".scratch/mine")
    monkeypatch.setattr(search, "RESIDENT", 9)
    monkeypatch.setattr(store, "_BLOCK_ROWS", 16)
    monkeypatch.setattr(domains, "LARGE", 1)
    run_mine(sample=sample)
    assert tree(ROUND) == whole


def test_a_killed_run_goes_on_from_the_block_where_it_was(run_mine: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpus("birds", CORPUS)
    run_mine()
    whole = tree(ROUND)
    shutil.rmtree(".scratch/mine")
    monkeypatch.setattr(search, "RESIDENT", 25)
    monkeypatch.setattr(domains, "LARGE", 1)
    index, indexed = search.Search._index, []

    def die_at_the_third(searcher: search.Search, documents: slice) -> object:
        if len(indexed) == 2 and documents not in indexed:
            raise KeyboardInterrupt
        indexed.append(documents)
        return index(searcher, documents)

    monkeypatch.setattr(search.Search, "_index", die_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_mine()
    monkeypatch.setattr(search.Search, "_index", lambda *given: indexed.append(given[1]) or index(*given))
    run_mine()
    assert tree(ROUND) == whole
    assert [documents.start for documents in indexed] == [0, 25, 50, 75, 0, 25]


def test_a_new_corpus_leaves_other_domains_as_they_are(run_mine: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    run_mine()
    choose, calls = mine.choose_negatives, []
    monkeypatch.setattr(mine, "choose_negatives", lambda *given: calls.append(1) or choose(*given))
    write_corpus("fish", CORPUS)
    run_mine()
    assert len(calls) == 1
    assert np.mean([text in CORPUS for texts in mined("fish").values() for text in texts]) > 0.3
