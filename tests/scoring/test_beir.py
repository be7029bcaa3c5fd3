"""Collections out of BEIR folders, and which collections are read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from batchwright.core.errors import InputError
from batchwright.formats.query_scores import flaws
from stages.scoring.collection import EvaluateParams, RerankParams, score_queries
from stages.scoring.read import beir, names, read_collections
from stages.scoring.retrieval import word_system
from tests.helpers import topic_pairs, write_pairs

PAIRS = Path("data/pairs")


@pytest.fixture
def folder(workspace: Path) -> Path:
    folder = Path("raw/beir/tiny-facts")
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "a"}\n{"_id": "d2", "text": "b"}\n')
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "q{number}", "text": "question {number}"}}\n' for number in (1, 2, 3))
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td2\t0\n")
    return folder


def test_a_beir_folder_gives_the_queries_that_have_a_relevant_document(folder: Path) -> None:
    collection = beir(folder)
    assert collection.name == "tiny-facts"
    assert [(query.id, query.text, query.domain) for query in collection.queries] == [
        ("q1", "question 1", "tiny-facts")
    ]
    assert [(document.id, document.text) for document in collection.documents] == [("d1", "T a"), ("d2", "b")]
    assert collection.relevant == {"q1": {"d1": 2, "d2": 1}}


def remove_judgments(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").unlink()


def rename_queries(folder: Path) -> None:
    (folder / "queries.jsonl").write_text('{"_id": "other", "text": "a"}\n')


def empty_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (remove_judgments, r"qrels/test\.tsv: no such file; a BEIR folder holds"),
        (rename_queries, r"tiny-facts: no judged queries, or no documents"),
        (empty_corpus, r"tiny-facts: no judged queries, or no documents"),
    ],
)
def test_an_unusable_beir_folder_is_explained(folder: Path, harm: Callable[[Path], None], message: str) -> None:
    harm(folder)
    with pytest.raises(InputError, match=message):
        beir(folder)


def judge(folder: Path, *rows: str) -> None:
    (folder / "qrels" / "test.tsv").write_text("".join("\t".join(row.split()) + "\n" for row in rows))


@pytest.mark.parametrize("record", [r'{"_id": "d3", "text": "\ud800"}', r'{"_id": "d\ud800", "text": "c"}'])
def test_half_a_surrogate_pair_is_named_with_its_file(folder: Path, record: str) -> None:
    with (folder / "corpus.jsonl").open("a") as handle:
        handle.write(f"{record}\n")
    with pytest.raises(InputError, match=r"corpus\.jsonl: 'd.* holds half a surrogate pair, which is not UTF-8"):
        beir(folder)


def test_grades_with_decimals_give_the_ndcg_of_the_same_grades_as_whole_numbers(folder: Path) -> None:
    ranking = np.array([[1, 0]])
    judge(folder, "q1 d1 1.5", "q1 d2 0.25")
    with_decimals = score_queries(beir(folder), ranking)
    judge(folder, "q1 d1 6", "q1 d2 1")
    assert with_decimals == score_queries(beir(folder), ranking)
    judge(folder, "q1 d1 1.0", "q1 d2 0.3333333")
    assert beir(folder).relevant == {"q1": {"d1": 1000, "d2": 333}}


def test_what_is_judged_but_missing_is_counted_and_stays_unfound(folder: Path) -> None:
    judge(folder, "q1 d1 1", "q1 gone 1", "q2 gone 1", "lost d1 1", "q3 nowhere 0")
    collection = beir(folder)
    assert collection.flaws == {"missing_documents": 1, "missing_queries": 1}
    scored = score_queries(collection, np.array([[0, 1], [0, 1]]))
    assert [scored[query]["recall@100"] for query in ("q1", "q2")] == [0.5, 0.0]


def test_queries_that_are_trained_on_are_counted(folder: Path) -> None:
    judge(folder, "q1 d1 1", "q2 d1 1")
    trained = [("Question 1?", "an answer"), ("question 3", "not judged"), ("question", "another")]
    write_pairs("birds", trained)
    write_pairs("fish", [("question 2", "held out")], split="test")
    collections = {collection.name: collection for collection in read_collections(PAIRS, params(folder))}
    assert {name: collection.flaws for name, collection in collections.items()} == {
        "held_out": {},
        "tiny-facts": {"trained_queries": 1},
    }
    assert flaws(collections["tiny-facts"].flaws, "tiny-facts") == [
        "1 queries of tiny-facts are queries of training pairs, too, which flatters its scores"
    ]


def test_judgements_without_a_relevant_document_are_refused(folder: Path) -> None:
    judge(folder, "q1 d1 0", "q2 d2 -1")
    with pytest.raises(InputError, match=r"qrels/test\.tsv: no document is relevant; one needs a relevance above 0"):
        beir(folder)


@pytest.mark.parametrize("rerank", [None, {"documents": 2}])
def test_a_query_does_not_find_the_document_with_its_own_id(folder: Path, rerank: dict[str, int] | None) -> None:
    write_pairs("birds", topic_pairs(5))
    texts = {"q1": "a red fox", "d1": "red foxes hunt", "d2": "a fox"}
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "{key}", "text": "{of}"}}\n' for key, of in texts.items()))
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a red fox"}\n{"_id": "q2", "text": "a red fox"}\n')
    judge(folder, "q1 d1 1", "q2 q1 1")
    [collection] = read_collections(
        PAIRS, params(folder).model_copy(update={"rerank": rerank and RerankParams(**rerank)})
    )
    ranked = word_system(2)(collection)
    assert [[collection.documents[each].id for each in row] for row in ranked.tolist()] == [["d1", "d2"], ["q1", "d1"]]
    scored = score_queries(collection, ranked)
    assert [scored[query]["ndcg@10"] for query in ("q1", "q2")] == [1, 1]


def test_a_relevant_document_is_found_even_if_it_is_numbered_as_its_query_is(folder: Path) -> None:
    (folder / "queries.jsonl").write_text('{"_id": "d1", "text": "question 1"}\n{"_id": "d2", "text": "question 2"}\n')
    judge(folder, "d1\td1\t1", "d2\td1\t1")
    collection = beir(folder)
    assert collection.own == [-1, 1]
    scores = score_queries(collection, np.array([[0, 1], [1, 0]]))
    assert [scores[query]["ndcg@10"] for query in ("d1", "d2")] == [1, 1]


def test_answers_are_read_beside_the_queries(folder: Path) -> None:
    write_pairs("birds", topic_pairs(5))
    asked = params(folder).model_copy(update={"measures": ["answers@5"]})
    with pytest.raises(
        InputError, match=r"evaluate\.measures: answers@5 needs answers, which the queries\.jsonl of no"
    ):
        read_collections(PAIRS, asked)
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "a", "answers": ["x", "y"]}\n'
        '{"_id": "q2", "text": "b", "metadata": {"answers": ["z"]}}\n{"_id": "q3", "text": "c"}\n'
    )
    judge(folder, "q1 d1 1", "q2 d2 1")
    assert read_collections(PAIRS, asked)[0].answers == {"q1": ["x", "y"], "q2": ["z"]}
    judge(folder, "q1 d1 1", "q3 d2 1")
    with pytest.raises(InputError, match=r"queries\.jsonl: 1 judged queries have no 'answers', such as 'q3'; add them"):
        read_collections(PAIRS, asked)
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a", "answers": "x"}\n')
    with pytest.raises(InputError, match=r"queries\.jsonl, line 1: 'answers' must be a list of texts"):
        read_collections(PAIRS, asked)


def params(*folders: Path) -> EvaluateParams:
    return EvaluateParams.model_validate(
        {"held_out": {"queries": 5, "documents": 20}, "beir": [str(folder) for folder in folders]}
    )


def test_without_held_out_pairs_a_beir_folder_is_enough(workspace: Path, folder: Path) -> None:
    write_pairs("birds", topic_pairs(5))
    assert [collection.name for collection in read_collections(PAIRS, params(folder))] == ["tiny-facts"]
    with pytest.raises(InputError, match=r"no held-out pairs to evaluate on; raise ingest\.held_out"):
        read_collections(PAIRS, params())
    write_pairs("fish", topic_pairs(5, seed=1), split="test")
    assert [collection.name for collection in read_collections(PAIRS, params(folder))] == ["held_out", "tiny-facts"]


def test_a_folder_that_dvc_does_not_watch_is_refused(workspace: Path, folder: Path) -> None:
    with pytest.raises(InputError, match=r"elsewhere/facts: lies outside raw/beir, so dvc repro would not notice"):
        read_collections(PAIRS, params(folder, Path("elsewhere/facts")))


def test_folders_of_one_name_are_told_apart_by_their_paths() -> None:
    assert names(["a/scifact", "b/nq"]) == ["scifact", "nq"]
    assert names(["a/scifact", "b/scifact", "b/held_out"]) == ["a/scifact", "b/scifact", "b/held_out"]
    with pytest.raises(InputError, match=r"evaluate\.beir names 'a/scifact' twice"):
        names(["a/scifact", "a/scifact/"])
