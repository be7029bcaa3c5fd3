"""Inputs that another thread prepares one step ahead."""

import threading
from time import sleep

import pytest

from trainers.common.texts import ahead


def test_each_step_gets_its_own_inputs_one_ahead_and_from_another_thread() -> None:
    begun: list[int] = []
    threads = set()

    def prepare(step: int) -> int:
        begun.append(step)
        threads.add(threading.current_thread())
        return step * step

    with ahead(prepare, 7) as prepared:
        for step in range(3, 7):  # a resumed run
            assert prepared(step) == step * step
            prepared.settle()
            assert begun == list(range(3, min(step + 2, 7)))
    assert threading.current_thread() not in threads and not any(thread.is_alive() for thread in threads)


def test_an_error_appears_at_its_step() -> None:
    def prepare(step: int) -> int:
        if step == 2:
            raise ValueError("shard")
        return step

    with ahead(prepare, 5) as prepared:
        assert prepared(0) == 0
        assert prepared(1) == 1
        prepared.settle()
        with pytest.raises(ValueError, match="shard"):
            prepared(2)


def test_settling_waits() -> None:
    done: list[int] = []

    def prepare(step: int) -> None:
        sleep(0.05)
        done.append(step)

    with ahead(prepare, 2) as prepared:
        prepared(0)
        prepared.settle()
        assert done == [0, 1]
