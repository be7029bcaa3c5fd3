"""A domain that travels to other processes as its name, and is opened where it is needed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from batchwright.by_domain.spread import Map
from batchwright.formats.clusters import Clusters
from stages.pack.domain import Domain
from stages.pack.inputs import Inputs


@dataclass(frozen=True)
class Source:
    """The domain ``name`` of ``inputs``; ``do_parts`` helps to open it here, but does not travel."""

    inputs: Inputs
    name: str
    do_parts: Map = map

    @cached_property
    def opened(self) -> tuple[Domain, list[Clusters]]:
        """The domain and its clusterings, opened once in each process."""
        return self.inputs.open(self.name, self.do_parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.inputs, self.name)
