"""Words, with and without spaces between them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.words import letters_apart, words

WORD = re.compile(r"[^\W_]+")


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


@given(st.text(st.characters(max_codepoint=0x0DFF)) | st.just("한국어 텍스트") | st.just("ქართული ენა"))
def test_words_of_other_scripts_are_what_they_were(text: str) -> None:
    assert words(text, WORD) == WORD.findall(text)
    assert letters_apart(text) == text


def test_letters_are_set_apart() -> None:
    assert letters_apart("第12号 v2").split() == ["第", "12", "号", "v2"]
