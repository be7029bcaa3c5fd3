"""Words, with and without spaces between them."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.words import MARKS, letters_apart, words
from batchwright.retrievers.common.words import WORD as BM25_WORD
from pipelines.embed.lexical import WORD
from stages.filter.words import WORD as FILTER_WORD

UNMARKED = {WORD: re.compile(r"[^\W_]+"), BM25_WORD: re.compile(r"\b\w\w+\b"), FILTER_WORD: re.compile(r"\w+")}
"""What the patterns find in texts without marks."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京天气", ["北", "京", "天", "气", "北京", "京天", "天气"]),  # Chinese
        ("iPhone手机 v2", ["iPhone", "v2", "手", "机", "手机"]),
        ("第0号", ["0", "第", "号"]),
        ("タワー", ["タ", "ワ", "ー", "タワ", "ワー"]),  # Japanese
        (
            "น้ำดี",
            ["น้", "ำ", "ดี", "น้ำ", "ำดี"],
        ),  # Thai: tones and vowels belong to the letter that they are written around
        ("ນ້ຳ", ["ນ້", "ຳ", "ນ້ຳ"]),  # Lao
        ("ខ្ញុំ", ["ខ្", "ញុំ", "ខ្ញុំ"]),  # Khmer
        ("မြန်", ["မြ", "န်", "မြန်"]),  # Burmese
        ("猫", ["猫"]),
    ],
)
def test_letters_and_pairs_stand_for_words_of_scripts_without_spaces(text: str, expected: list[str]) -> None:
    assert sorted(words(text, WORD)) == sorted(expected)


@pytest.mark.parametrize("pattern", UNMARKED)
@given(
    st.text(st.characters(max_codepoint=0x0DFF, exclude_categories=["Mn", "Mc", "Me"]) | st.sampled_from("a_ é"))
    | st.just("한국어 텍스트")
    | st.just("ქართული ენა")
)
def test_words_of_other_scripts_are_what_they_were(pattern: re.Pattern[str], text: str) -> None:
    assert words(text, pattern) == UNMARKED[pattern].findall(text)
    assert letters_apart(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "हिन्दी में लिखा",  # Hindi
        "বাংলা ভাষা",  # Bengali
        "தமிழ் மொழி",  # Tamil
        "ക്‍ഷേത്രം പോകും",  # Malayalam, with a joiner
        "العَرَبِيَّة لُغَة",  # Arabic with vowels
        "שָׁלוֹם עוֹלָם",  # Hebrew with vowels
    ],
)
@pytest.mark.parametrize("pattern", UNMARKED)
def test_marks_belong_to_their_word(pattern: re.Pattern[str], text: str) -> None:
    assert words(text, pattern) == unicodedata.normalize("NFC", text).split()


def test_an_accent_counts_the_same_whether_it_stands_alone_or_not() -> None:
    assert words("cafe\u0301 noir", WORD) == words("caf\u00e9 noir", WORD) == ["caf\u00e9", "noir"]


def test_words_of_two_characters_count_for_bm25() -> None:
    assert words("a में b2 म x", BM25_WORD) == ["में", "b2"]
    assert all(words(f"a{mark}b", BM25_WORD) for mark in MARKS)


def test_letters_are_set_apart() -> None:
    assert letters_apart("第12号 v2").split() == ["第", "12", "号", "v2"]
