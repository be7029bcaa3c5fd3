"""The stage ``tokens``, which measures retrieval by tokens."""

from pathlib import Path

import numpy as np
import pytest

from batchwright.core.results import read_tsv
from batchwright.formats.prefixes import Prefix
from batchwright.retrievers import ModelInfo
from batchwright.retrievers.xtr.encode import TokenVectors
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import save_token_model
from stages.scoring.collection import Collection, Text
from stages.tokens.ranks import shares_by_rank
from stages.tokens.stage import _measure, _ranks, main
from tests.helpers import topic_pairs, write_params, write_rows
from tests.tiny_models import save_bert
from tests.train.toys import describe
from trainers.common.randomness import seed_start
from trainers.xtr.start import start_from


def test_shares_by_rank_count_the_querys_token_and_relevant_documents() -> None:
    first = np.array([[7, 8, 9], [5, 7, 5]]), np.array([[0, 1, 2], [2, 2, 0]])
    second = np.array([[1, 1, 2]]), np.array([[1, 0, -1]])
    asked = [np.array([7, 5]), np.array([1])]
    lexical, gold = shares_by_rank([first, second], asked, [np.array([0]), np.array([1, 2])])
    assert lexical.tolist() == pytest.approx([1, 1 / 3, 1 / 3])
    assert gold.tolist() == pytest.approx([2 / 3, 0, 1 / 3])


def one_token_documents(count: int) -> tuple[TokenIndex, TokenVectors]:
    """Documents of one token each, ever less similar to the query's two tokens, the second of which is special."""
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
        wanted: [row["recall@100"] for row in _measure(index, queries, asking_for(wanted, 70))] for wanted in (0, 69)
    }
    assert found == {0: [1.0] * 4, 69: [0.0] * 4}


def test_the_querys_special_tokens_are_not_counted() -> None:
    index, queries = one_token_documents(3)
    ids = np.array([7, 2, 2])
    rows = _ranks(index, queries, ids, [2], asking_for(1, 3))
    assert rows == [
        {"rank": 1, "lexical": 1.0, "gold": 0.0},
        {"rank": 2, "lexical": 0.0, "gold": 1.0},
        {"rank": 3, "lexical": 0.0, "gold": 0.0},
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
    write_params(workspace)
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
