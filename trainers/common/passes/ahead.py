"""Prepares each step's inputs in another thread, while the step before it trains."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """Calls ``prepare`` with the number of a step, one step ahead, until ``steps``.

    An error in it is raised at the step that it belongs to.
    """

    def __init__(self, prepare: Callable[[int], T], steps: int, executor: ThreadPoolExecutor) -> None:
        self._prepare, self._steps, self._executor = prepare, steps, executor
        self._next: tuple[int, Future[T]] | None = None

    def __call__(self, step: int) -> T:
        """Return what was prepared for ``step``, and begin with the next one."""
        known = self._next is not None and self._next[0] == step
        future = self._next[1] if known and self._next else self._submit(step)
        prepared = future.result()
        self._next = (step + 1, self._submit(step + 1)) if step + 1 < self._steps else None
        return prepared

    def settle(self) -> None:
        """Wait until nothing is being prepared: a tokenizer cannot be saved while it is in use."""
        if self._next:
            wait([self._next[1]])

    def _submit(self, step: int) -> Future[T]:
        return self._executor.submit(self._prepare, step)


@contextmanager
def ahead(prepare: Callable[[int], T], steps: int) -> Iterator[Ahead[T]]:
    """Yield an ``Ahead``; its thread ends with the block."""
    with ThreadPoolExecutor(1, "prepare") as executor:
        yield Ahead(prepare, steps, executor)
