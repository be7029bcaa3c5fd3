"""Task prefixes, which are put before a text when a model reads it and are never stored in the pairs."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from batchwright.core.params import Params

Side = Literal["query", "document"]
SIDES: tuple[Side, Side] = ("query", "document")


class Prefix(Params):
    """The text put before queries and documents."""

    query: str = ""
    """Put before each query, such as ``search_query: ``."""
    document: str = ""
    """Put before each document, such as ``search_document: ``."""


class Prefixes(Params):
    """The prefixes that a model was trained with."""

    default: Prefix = Prefix()
    """For every domain that has no entry in ``domains``."""
    domains: dict[str, Prefix] = Field(default={})
    """For individual domains, by name."""

    def of(self, domain: str | None, side: Side) -> str:
        """The prefix for one side of a domain; None means the default."""
        prefix = self.default if domain is None else self.domains.get(domain, self.default)
        return prefix.query if side == "query" else prefix.document

    def put_before(self, texts: Sequence[str], side: Side, domains: Sequence[str] | None = None) -> list[str]:
        """Prepend the prefix to each text; ``domains`` gives the domain of each text."""
        owners = domains if domains is not None else [None] * len(texts)
        return [self.of(domain, side) + text for domain, text in zip(owners, texts, strict=True)]
