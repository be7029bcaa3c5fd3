# ruff: noqa: RUF001  (these tests are about letters that look alike)
"""Duplicate classes: which texts share one, and that nothing but the texts decides."""

import random
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.core.normal_form import normal_form, normal_forms
from stages.negatives import duplicates
from stages.negatives.duplicates import duplicate_classes
from stages.negatives.sketches import WIDTH, jaccard, numbers_in

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def text(seed: int, words: int = 60) -> str:
    generator = random.Random(seed)
    return " ".join("".join(generator.choices(LETTERS, k=generator.randint(2, 8))) for _ in range(words))


def edited(original: str, edits: int, seed: int) -> str:
    generator = random.Random(seed)
    letters = list(original)
    for place in generator.sample(range(len(letters)), edits):
        letters[place] = generator.choice(LETTERS)
    return "".join(letters)


def similarity(left: str, right: str) -> float:
    """Jaccard similarity by its definition."""
    sets = []
    for form in (left, right):
        padded = f" {form} ".ljust(WIDTH)
        sets.append({padded[start : start + WIDTH] for start in range(len(padded) - WIDTH + 1)})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def are_one(left: str, right: str, near_duplicates: float = 0.9) -> bool:
    classes = duplicate_classes([[left, right]], near_duplicates)
    return bool(classes[0] == classes[1])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("What is it?", "  what IS\tit"),
        ("top-up", "Top up"),
        ("“quoted” (text)", '"quoted" text'),
        ("Straße", "STRASSE"),
        ("café", unicodedata.normalize("NFD", "café")),
        ("ＡＢＣ １２", "abc 12"),
        ("नमस्ते।", "नमस्ते"),
        ("你好，世界！", "你好 世界"),
        ("Привет, мир", "привет мир"),
    ],
)
def test_case_white_space_punctuation_and_unicode_form_are_ignored(left: str, right: str) -> None:
    assert are_one(left, right, near_duplicates=1.0)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("!!!", "???"),
        ("...", "!"),
        ("cd -", "cd"),
        ("What is C#?", "What is C?"),
        ("What is C++?", "What is C?"),
        ("ls *", "ls /"),
        ("कि", "की"),
        ("你好", "你们"),
        ("a b", "b a"),
        ("a b", "ab"),
        ("type 1", "type 2"),
    ],
)
def test_other_texts_stay_apart(left: str, right: str) -> None:
    assert not are_one(left, right)


@given(st.lists(st.text(alphabet="asSß \t\n\u00a0.,!?-é", max_size=6), max_size=12))
def test_without_near_duplicates_classes_are_normal_forms(texts: list[str]) -> None:
    classes = duplicate_classes([texts], 1.0)
    assert classes.shape == (len(texts),)
    for left, of_left in zip(texts, classes, strict=True):
        for right, of_right in zip(texts, classes, strict=True):
            assert (of_left == of_right) == (normal_form(left) == normal_form(right))


@given(st.lists(st.text(alphabet=[*map(chr, range(128)), "é", "“", "\u00a0"], max_size=12), max_size=6))
def test_many_normal_forms_are_those_of_each_text(texts: list[str]) -> None:
    assert normal_forms(texts) == [normal_form(text) for text in texts]


@given(st.text(alphabet="019a_%# ٣é", max_size=12))
def test_numbers_stand_alone(any_text: str) -> None:
    assert numbers_in(any_text) == " ".join(sorted(re.findall(r"\b\d+\b", any_text)))


def test_numbers_between_letters_of_scripts_without_spaces_stand_alone() -> None:
    assert numbers_in("第0号机型, 12 v3") == "0 12"


@given(st.text(max_size=40))
def test_normalising_ignores_the_case_of_a_normal_form_and_empties_only_blank_texts(any_text: str) -> None:
    form = normal_form(any_text)
    assert normal_form(f"  {form.upper().lower()}  ").split() == normal_form(form.upper()).split()
    assert bool(form) == bool(any_text.strip() and unicodedata.normalize("NFKC", any_text).strip())


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=8))
def test_the_jaccard_similarity_is_exact(pairs: list[tuple[str, str]]) -> None:
    texts = [side for pair in pairs for side in pair]
    found = jaccard(pa.array(texts, pa.large_string()), np.arange(0, len(texts), 2), np.arange(1, len(texts), 2))
    assert found.tolist() == pytest.approx([similarity(*pair) for pair in pairs])


def test_planted_near_copies_are_found_and_nothing_else() -> None:
    originals = [text(number) for number in range(300)]
    copies = [edited(original, 1 + number % 3, number) for number, original in enumerate(originals)]
    classes = duplicate_classes([originals + copies], 0.9)
    alike = [similarity(*pair) >= 0.9 for pair in zip(originals, copies, strict=True)]
    assert sum(alike) > 250
    assert (classes[:300] == classes[300:]).tolist() == alike
    assert len(np.unique(classes[:300])) == 300


@pytest.mark.parametrize("near_duplicates", [0.7, 0.8, 0.95])
def test_the_parameter_is_the_threshold(near_duplicates: float) -> None:
    originals = [text(number) for number in range(60)]
    copies = [edited(original, 1 + number // 4, number) for number, original in enumerate(originals)]
    found = duplicate_classes([originals + copies], near_duplicates)
    expected = [similarity(*pair) >= near_duplicates for pair in zip(originals, copies, strict=True)]
    assert 0 < sum(expected) < 60
    assert (found[:60] == found[60:]).tolist() == expected


def test_a_text_with_a_different_number_is_a_different_text() -> None:
    sentence = text(1, words=30)
    assert not are_one(f"{sentence} in 2018", f"{sentence} in 2019")
    assert are_one(f"{sentence} in 2018", f"in 2018 {sentence}")


def test_a_chain_of_small_edits_does_not_become_one_class() -> None:
    chain = [text(1)]
    for step in range(60):
        chain.append(edited(chain[-1], 2, step))
    classes = duplicate_classes([chain], 0.9)
    forms = [normal_form(link) for link in chain]
    assert 1 < len(set(classes.tolist())) < len(chain)
    for name in set(classes.tolist()):
        members = [form for form, of_form in zip(forms, classes, strict=True) if of_form == name]
        assert max(min(similarity(first, member) for member in members) for first in members) >= 0.8


def test_the_comparisons_in_a_huge_class_are_linear_in_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(texts: pa.LargeStringArray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        compared.append(len(left))
        return jaccard(texts, left, right)

    monkeypatch.setattr(duplicates, "jaccard", counted)
    original = text(1, words=120)
    copies = [edited(original, 1, number) for number in range(2000)]
    assert len(set(duplicate_classes([[*copies, *copies[:50]]], 0.9).tolist())) == 1
    assert sum(compared) < 4 * len(copies)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_texts_does_not_matter(generator: random.Random) -> None:
    texts = [text(number) for number in range(8)]
    texts += [edited(one, 2, number) for number, one in enumerate(texts)] + texts[:3]
    order = list(range(len(texts)))
    generator.shuffle(order)
    shuffled = duplicate_classes([[texts[place] for place in order]], 0.9)
    np.testing.assert_array_equal(shuffled, duplicate_classes([texts], 0.9)[order])


@pytest.mark.parametrize("near_duplicates", [0.9, 1.0])
def test_no_texts_one_text_and_empty_texts_get_classes(near_duplicates: float) -> None:
    assert duplicate_classes([[]], near_duplicates).shape == (0,)
    assert duplicate_classes([["one"]], near_duplicates).tolist() == [0]
    assert duplicate_classes([["", " ", ""]], near_duplicates).tolist() == [0, 0, 0]


def test_the_size_of_blocks_does_not_change_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text(number // 2, words=30) + ("" if number % 2 else " more") for number in range(40)]
    whole = duplicate_classes([texts], 0.9)
    monkeypatch.setattr("stages.negatives.sketches._BLOCK_BYTES", 300)
    np.testing.assert_array_equal(duplicate_classes([texts], 0.9), whole)
