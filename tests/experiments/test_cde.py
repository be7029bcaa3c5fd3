"""Experiments with CDE that need no trained model: rarity of words, what it is worth, made texts, and a picture."""

import math
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv
from batchwright.retrievers.common.words import K1, B
from experiments.cde import idf, picture, planted, rarity
from experiments.rivals.sets import HeldOut
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


def test_a_ranking_by_words_is_that_of_loops_over_bm25() -> None:
    documents = ["the bird sings", "the bird the fish", "a long text of the fish and of nothing else", "the end"]
    documents += [f"other text {number}" for number in range(8)]
    held_out = HeldOut(queries=["the bird", "fish end"], documents=documents, relevant=[[1], [2]])
    vocabulary = sorted(idf.document_counts(documents))
    weights = rarity.rarity(vocabulary, idf.document_counts(documents), len(documents))

    def score(query: str, document: str) -> float:
        words, mean = idf.words_of(document), np.mean([len(idf.words_of(text)) for text in documents])
        found = {word: words.count(word) for word in idf.words_of(query)}
        length = K1 * (1 - B + B * len(words) / mean)
        return float(
            sum(weights[vocabulary.index(word)] * n * (K1 + 1) / (n + length) for word, n in found.items() if n)
        )

    ranks = [sorted(range(12), key=lambda place: -score(query, documents[place])) for query in held_out.queries]
    expected = [1 / np.log2(order.index(right) + 2) for order, (right,) in zip(ranks, held_out.relevant, strict=True)]
    assert expected != [1, 1]
    assert rarity.Ranker.of(held_out, vocabulary).ndcg(weights) == pytest.approx(expected)


def test_a_word_is_as_rare_as_its_documents_are_few() -> None:
    own = rarity.rarity(["bird", "fish", "nowhere"], {"bird": 1, "fish": 3}, 4)
    assert own == pytest.approx(np.log([1 + 3.5 / 1.5, 1 + 1.5 / 3.5, 1 + 4.5 / 0.5]))


def test_own_frequencies_pay_where_words_are_common_that_are_rare_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, files = np.random.default_rng(0), []
    birds, fish = ([f"{kind}{number}" for number in range(12)] for kind in ("bird", "fish"))
    for name, common, rare in (("birds", birds, fish), ("fish", fish, birds)):
        both = list(combinations(rare, 2))[:60]
        queries, documents = (
            [" ".join([*two, *rng.choice(common, 6, replace=False)]) for two in both] for _ in range(2)
        )
        files.append(tmp_path / f"{name}.parquet")
        pq.write_table(pa.table({"query": queries, "document": documents, "domain": [name] * 60}), files[-1])
    monkeypatch.setattr(sys, "argv", ["rarity", *map(str, files), "--output", str(tmp_path / "rarity.tsv")])
    rarity.main()
    rows = read_tsv(tmp_path / "rarity.tsv", made_by="rarity")
    assert [row["set"] for row in rows] == ["birds", "fish"]
    assert all(float(row["own"]) > float(row["none"]) > float(row["others"]) > 0 for row in rows)
    monkeypatch.setattr(sys, "argv", ["rarity", str(files[0]), "--output", "rarity.tsv"])
    with pytest.raises(InputError, match="one set has no others; name at least two"):
        rarity.main()


def test_neighbours_are_counted_that_are_of_the_same_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "NEIGHBOURS", 2)
    angles = np.radians([0, 1, 2, 90, 91, 3])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert picture.own_share(vectors, ["birds"] * 3 + ["fish"] * 3) == pytest.approx((2 + 2 + 1 + 2 + 2 + 0) / 12)


def test_domains_that_lie_apart_are_laid_out_apart_and_those_that_do_not_are_not() -> None:
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((60, 8)).astype(np.float32)
    apart = mixed + np.repeat([[9], [-9]], 30, axis=0)
    domains = ["birds"] * 30 + ["fish"] * 30

    def nearest_alike(places: picture.Points) -> float:
        distances = np.linalg.norm(places[:, None] - places, axis=2) + np.diag(np.full(60, np.inf))
        return float(np.mean([domains[row] == domains[near] for row, near in enumerate(distances.argmin(axis=1))]))

    first, second = picture.lay_out([mixed, apart])
    assert nearest_alike(first) < 0.8 < nearest_alike(second) == 1


def test_a_picture_has_a_dot_for_each_document_in_the_colour_of_its_domain() -> None:
    rng = np.random.default_rng(0)
    panels = {f"context: {name}": rng.standard_normal((50, 2)).astype(np.float32) for name in ("none", "own")}
    svg = picture.draw(panels, ["birds"] * 20 + ["fish"] * 30)
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert [*panels, "birds", "fish"] == [text.strip() for text in texts]
    paths = [element for element in ET.fromstring(svg).iter() if element.tag.endswith("path")]
    dots = [
        (path.attrib["d"].count("M"), path.attrib["style"]) for path in paths if "z" in path.attrib["d"].split("M")[1]
    ]
    assert [count for count, style in dots if "stroke-linecap: round" in style] == [20, 30, 20, 30]


def test_a_text_of_two_domains_differs_by_the_context_of_its_domain(tmp_path: Path, tiny_bert: Path) -> None:
    cde = picture.load_cde(str(tiny_bert), "sequence", 4, tmp_path / "cde")
    texts = [document for seed in (0, 1) for _, document in topic_pairs(10, seed=seed)]
    texts[9] = texts[19] = "topic0 the same"
    domains = ["birds"] * 10 + ["fish"] * 10
    vectors = picture.embed(cde, texts, domains)
    assert list(vectors) == ["none", "one for all", "own", "another domain's"]
    own, another = vectors["own"], vectors["another domain's"]
    np.testing.assert_allclose(own, cde.index(texts, domains).vectors, atol=1e-6)
    for one, other in ((own[9], another[19]), (another[9], own[19])):
        np.testing.assert_allclose(one, other, atol=1e-6)
    same = {name for name, each in vectors.items() if np.allclose(each[9], each[19], atol=1e-6)}
    assert same == {"none", "one for all"}
    assert abs(vectors["none"] - vectors["one for all"]).max() > 1e-4


def test_the_picture_of_a_cde_before_training(
    workspace: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, domain in enumerate(("birds", "fish")):
        write_pairs(domain, topic_pairs(40, seed=seed))
    given = ["picture", str(workspace / "data"), "--domains", "birds", "fish", "--model", str(tiny_bert)]
    given += ["--form", "gated", "--output", "picture.svg", "--documents"]
    monkeypatch.setattr(sys, "argv", [*given, "30"])
    told = re.findall(r" (\d?\.\d+)", picture.main())
    assert len(told) == 4
    assert len(set(told)) == 1, "shut gates read no context"
    assert Path("picture.svg").read_text(encoding="utf-8").count(f"same domain: {told[0]}") == 4
    monkeypatch.setattr(sys, "argv", [*given, "50"])
    with pytest.raises(InputError, match="domain birds: has 40 documents; lower --documents from 50"):
        picture.main()


def test_planted_domains_share_words_that_only_rarity_tells_apart() -> None:
    domain = planted.draw(np.random.default_rng(0), 200)
    for query, document in zip(domain.queries, domain.documents, strict=True):
        of_document, of_query = (set(text.tolist()) - set(domain.common.tolist()) for text in (document, query))
        assert (len(of_document), len(of_query)) == (planted.OWN, planted.OWN - 1)
        assert of_query < of_document
        assert len(set(document.tolist())) == planted.OWN + planted.NOISE
    weights = planted.rarity(domain.documents)
    assert max(weights[domain.common]) < min(np.delete(weights, domain.common))
    rare, alike = (planted.shared_words(domain, weights**power) for power in (1, 0))
    own = np.arange(200)
    assert (rare.argmax(axis=1) == own).mean() > 2 * (alike.argmax(axis=1) == own).mean()


@pytest.mark.slow
def test_a_planted_context_is_read_once_it_says_which_words_are_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "DOMAINS", 4)
    monkeypatch.setattr(planted, "CONTEXTS", {"common words": planted.of_common_words, "biencoder": None})
    monkeypatch.setattr(sys, "argv", ["planted", "--steps", "300", "--output", str(tmp_path / "planted.tsv")])
    planted.main()
    rows = {row["context"]: row for row in read_tsv(tmp_path / "planted.tsv", made_by="planted")}
    cde = rows["common words"]
    assert float(cde["own"]) > float(cde["another"]) + 0.05
    assert rows["biencoder"]["own"] == "-"
    assert float(rows["rare shared words"]["own"]) > float(rows["shared words"]["own"]) + 0.3
