"""Items are made ahead in another thread, one at a time, in order, errors included."""

import threading
from collections.abc import Iterator

import pytest

from pipelines.embed.rows import ahead


def test_the_next_item_is_made_while_the_last_one_is_used() -> None:
    made = [threading.Event() for _ in range(4)]

    def numbers() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    found = []
    for number in ahead(numbers()):
        found.append(number)
        assert all(event.wait(timeout=60) for event in made[: number + 2])
        assert not any(event.is_set() for event in made[number + 2 :])
    assert found == [0, 1, 2, 3]


def test_an_error_is_raised_in_its_place() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    numbered = ahead(numbers())
    assert next(numbered) == 1
    with pytest.raises(ValueError, match="no more"):
        next(numbered)


def test_nothing_comes_of_nothing() -> None:
    assert list(ahead([])) == []
