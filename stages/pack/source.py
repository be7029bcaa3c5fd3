"""Domains that travel to other processes as their names, and are opened where they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from batchwright.formats.clusters import Clusters
from stages.pack.domain import Domain
from stages.pack.inputs import Inputs


@dataclass(frozen=True)
class Source:
    """A domain of ``inputs``, or several that are packed together."""

    inputs: Inputs
    names: Sequence[str]

    @cached_property
    def opened(self) -> tuple[Domain, list[Clusters]]:
        """The domain and its clusterings, opened once in each process."""
        return self.inputs.open(self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.inputs, self.names)
