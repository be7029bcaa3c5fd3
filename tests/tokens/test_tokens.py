"""The stage ``tokens``, which measures retrieval by tokens."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from batchwright.core.files import read_tsv
from batchwright.formats.models import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import TokenVectors, save_token_model
from stages.scoring.collection import Collection, Text
from stages.tokens import examples, main, measure, shares_by_rank
from tests.helpers import topic_pairs, write_params, write_rows
from tests.tiny_models import save_bert
from tests.train.toys import describe
from trainers.common.passes import seed_start
from trainers.xtr.start import start_from


def test_shares_by_rank_count_the_querys_token_and_relevant_documents() -> None:
    first = np.array([[7, 8, 9], [5, 7, 5]]), np.array([[0, 1, 2], [2, 2, 0]])
    second = np.array([[1, 1, 2]]), np.array([[1, 0, -1]])
    asked = [np.array([7, 5]), np.array([1])]
    lexical, gold = shares_by_rank([first, second], asked, [np.array([0]), np.array([1, 2])])
    assert lexical.tolist() == pytest.approx([1, 1 / 3, 1 / 3])
    assert gold.tolist() == pytest.approx([2 / 3, 0, 1 / 3])


def one_token_documents(count: int) -> tuple[TokenIndex, TokenVectors]:
    """Documents of one token each, ever less similar to the query's two tokens."""
    angles = np.linspace(0, 1, count)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    index = TokenIndex.build(vectors, np.ones(count, np.int64), "m")
    return index, TokenVectors(vectors[[0, 0]], np.array([7, 2]), np.array([2]))


def asking_for(wanted: int, documents: int) -> Collection:
    texts = [Text(id=str(number), text="", domain="toys") for number in range(documents)]
    return Collection(name="toys", queries=texts[:1], documents=texts, relevant={"0": {str(wanted): 1}})


def test_a_document_without_retrieved_tokens_is_not_found() -> None:
    index, queries = one_token_documents(70)
    found = {
        wanted: [row["recall@100"] for row in measure(index, queries, asking_for(wanted, 70))] for wanted in (0, 69)
    }
    assert found == {0: [1.0] * 4, 69: [0.0] * 4}


class Words:
    """Decodes ids as their numbers."""

    @staticmethod
    def decode(ids: NDArray[np.int64]) -> str:
        return " ".join(map(str, np.atleast_1d(ids)))


def test_examples_show_retrieved_tokens_between_their_neighbours() -> None:
    angles = np.array([0.0, 0.5, 0.1, 1.0, 0.05])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    documents = TokenVectors(vectors, np.array([10, 11, 12, 13, 14]), np.array([2, 0, 3]))
    queries = TokenVectors(vectors[:1], np.array([7]), np.array([1]))
    index = TokenIndex.build(vectors, documents.lengths, "m")
    rows = examples(index, queries, documents, asking_for(2, 3), Words())
    assert [row["context"] for row in rows] == ["[10] 11", "12 13 [14]", "[12] 13 14"]
    assert [(row["token"], row["rank"], row["gold"]) for row in rows] == [
        ("7", 1, False),
        ("7", 2, True),
        ("7", 3, True),
    ]


def test_the_stage_writes_a_row_for_each_number_of_tokens_and_imputation(
    workspace: Path,
) -> None:
    pairs = topic_pairs(40)
    write_rows("birds", [(*pair, "test" if number < 5 else "train") for number, pair in enumerate(pairs)])
    seed_start(0)
    plain = ModelInfo(variant="biencoder", max_length=16)
    model = start_from(save_bert(workspace / "made"), plain, "cpu")
    save_token_model(model, workspace / "models" / "xtr", Prefix())
    describe(workspace / "models" / "xtr")
    write_params(workspace, {"evaluate.held_out.training_documents": True})
    assert main("xtr").startswith("xtr, nDCG@10 by tokens retrieved: 3 ")
    rows = read_tsv(workspace / "results/tokens/xtr.tsv", made_by="tokens")
    assert [row["imputation"] for row in rows[:4]] == ["last", "none", "mean", "constant"]
    assert {row["retrieved"] for row in rows} == {"3", "10"}
    shares = [float(row["imputed"]) for row in rows]
    assert shares == sorted(shares, reverse=True) and 0 < shares[0] < 1
    assert all(0 <= float(row["ndcg@10"]) <= 1 for row in rows)
    ranks = read_tsv(workspace / "results/tokens/xtr-ranks.tsv", made_by="tokens")
    assert [int(row["rank"]) for row in ranks] == list(range(1, 101))
    assert float(ranks[0]["lexical"]) > 0
    shown = read_tsv(workspace / "results/tokens/xtr-examples.tsv", made_by="tokens")
    assert len({row["query"] for row in shown}) == 3 and {row["rank"] for row in shown} == {"1", "2", "3"}
    assert all("[" in row["context"] for row in shown)
