"""Measures of a ranking, by their names in ``params.yaml`` and results, such as ``ndcg@10``."""

from collections.abc import Iterable, Sequence

import ir_measures
from ir_measures import AP, RR, P, R, Success, nDCG

from batchwright.core.normal_form import normal_form
from batchwright.core.terminal import hint
from batchwright.core.words import letters_apart

KINDS = {"ndcg": nDCG, "mrr": RR, "recall": R, "hit_rate": Success, "map": AP, "precision": P}
DEEPEST = 1_000_000
ANSWERS = "answers"
"""The share of queries for which one of the first documents contains an answer."""


def checked(name: str) -> str:
    """Return the name of a measure in small letters.

    Raises:
        ValueError: there is no such measure, or it has no depth.
    """
    kind, _, depth = name.lower().partition("@")
    known = [*KINDS, ANSWERS]
    if kind not in known:
        raise ValueError(f"unknown measure '{name}'{hint(kind, known)}")
    if not (depth.isascii() and depth.isdecimal() and 0 < int(depth) <= DEEPEST):
        raise ValueError(f"'{name}': say how many documents count, such as {kind}@10, and at most {DEEPEST:,}")
    return f"{kind}@{int(depth)}"


def depth_of(name: str) -> int:
    """Return how many documents of a ranking a measure looks at."""
    return int(name.partition("@")[2])


def counts_answers(name: str) -> bool:
    """Whether a measure looks for answers in documents, not for relevant documents."""
    return name.startswith(f"{ANSWERS}@")


def measure_of(name: str) -> ir_measures.Measure:
    """Return a measure that looks for relevant documents."""
    return KINDS[name.partition("@")[0]] @ depth_of(name)


def at_dimension(dimension: int) -> str:
    """Return the name of nDCG@10 by vectors cut to so many dimensions, as results have it."""
    return f"ndcg@10_{dimension}d"


def first_with_answer(answers: Sequence[str], documents: Iterable[str]) -> int | None:
    """Return the place of the first document that contains an answer, word for word in normal form, from 0, or None."""
    wanted = [_plain(answer) for answer in answers]
    texts = map(_plain, documents)
    return next((place for place, text in enumerate(texts) if any(answer in text for answer in wanted)), None)


def _plain(text: str) -> str:
    return f" {' '.join(letters_apart(normal_form(text)).split())} "
