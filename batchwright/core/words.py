"""Words of a text; in scripts that put nothing between words, letters and pairs of neighbours take their place.

Vowels and tones that are written around a letter, as in Hindi, Tamil or vocalised Arabic, belong to its word.

As an index of words, single letters and pairs together find about as much as a segmenter's words do (Luk and Kwok,
*A comparison of Chinese document indexing strategies and retrieval models*, 2002), and need no dictionary.
"""

import re
import unicodedata
from itertools import pairwise

_BLOCKS = (
    "\u0e00-\u0e3e\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0eff"  # Thai, Lao
    "\u0f40-\u0f84\u0f88-\u0fbc"  # Tibetan
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\uaa60-\uaa76\uaa7a-\uaa7f"  # Burmese, Shan, Mon, Karen
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1950-\u19cf\u1a20-\u1a7f\uaa80-\uaadd"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
    "\u1b00-\u1b4f\ua980-\ua9c0"  # Balinese, Javanese
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # ideographs
)
_JOINER = "\u200d"
MARKS = _JOINER + "".join(
    mark for mark in map(chr, range(0x300, 0x20000)) if unicodedata.category(mark).startswith("M")
)
"""What belongs to the letter before it, for the character class of a pattern; ``re`` has none of its own."""
_LETTER = rf"(?!\W)[{_BLOCKS}](?:(?=\W)[{_BLOCKS}])*"  # with the vowels and tones that are written around it
_LETTERS, _RUN, _MARK = re.compile(_LETTER), re.compile(f"(?:{_LETTER})+"), re.compile(f"[{MARKS}]")


def words(text: str, spaced: re.Pattern[str]) -> list[str]:
    """Return the words of a text, in no order: what ``spaced`` finds, but of scripts without spaces letters and pairs.

    A pair are two letters that follow one another. An accent counts the same whether it stands alone or not.
    """
    if text.isascii():
        return spaced.findall(text)
    if _MARK.search(text):
        text = unicodedata.normalize("NFC", text)
    if not (runs := _RUN.findall(text)):
        return spaced.findall(text)
    found: list[str] = spaced.findall(_RUN.sub(" ", text))
    for run in runs:
        letters = _LETTERS.findall(run)
        found += letters
        found += map("".join, pairwise(letters))
    return found


def letters_apart(text: str) -> str:
    """Return a text with spaces around each letter of a script without spaces."""
    return text if text.isascii() else _LETTERS.sub(r" \g<0> ", text)
