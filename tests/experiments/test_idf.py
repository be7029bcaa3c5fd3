"""``python -m experiments.cde.idf``: how far the rarity of words shifts."""

import math
import sys
from collections import Counter
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from experiments.cde import idf
from tests.helpers import topic_pairs, write_pairs


def test_a_shift_is_the_mean_difference_of_logarithms_over_frequent_words() -> None:
    one = Counter({"bird": 19, "the": 99, "rare": 4})
    other = Counter({"fish": 39, "the": 99, "rare": 5})
    assert idf.idf_shift(one, other) == pytest.approx((math.log(20) + math.log(40) + 0) / 3)


def test_a_word_counts_once_in_a_document() -> None:
    assert idf.document_counts(["A bird, a BIRD", "a fish"]) == {"a": 2, "bird": 1, "fish": 1}


def test_domains_differ_more_than_samples_of_one(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, domain in enumerate(("birds", "fish")):
        pairs = [(query, f"{document} {domain}") for query, document in topic_pairs(200, seed=seed)]
        write_pairs(domain, pairs)
    given = ["idf", str(workspace / "data"), "--documents", "90", "--output", "idf.tsv"]
    monkeypatch.setattr(sys, "argv", given)
    idf.main()
    rows = {row["domain"]: row for row in read_tsv(Path("idf.tsv"), made_by="idf")}
    assert rows["birds"]["fish"] == rows["fish"]["birds"]
    assert float(rows["birds"]["fish"]) > max(float(rows[name][name]) for name in rows)
    monkeypatch.setattr(sys, "argv", [*given[:3], "150", *given[4:]])
    with pytest.raises(InputError, match="domain birds: has 200 documents; lower --documents from 150"):
        idf.main()
