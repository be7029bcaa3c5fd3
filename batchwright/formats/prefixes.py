"""Task prefixes: put before a text when a model reads it, never stored in the pairs."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from batchwright.core.params import Params

Side = Literal["query", "document"]


class Prefix(Params):
    """What stands before a text."""

    query: str = ""
    """Before a query, such as ``search_query: ``."""
    document: str = ""
    """Before a document, such as ``search_document: ``."""


class Prefixes(Params):
    """The prefixes that a model was trained with."""

    default: Prefix = Prefix()
    """For every domain that is not named below."""
    domains: dict[str, Prefix] = Field(default={})
    """Prefixes of single domains."""

    def of(self, domain: str | None, side: Side) -> str:
        """The prefix for one side of a domain."""
        prefix = self.default if domain is None else self.domains.get(domain, self.default)
        return prefix.query if side == "query" else prefix.document

    def put_before(self, texts: Sequence[str], side: Side, domains: Sequence[str] | None = None) -> list[str]:
        """The texts as the model reads them; ``domains`` names the domain of each."""
        owners = domains if domains is not None else [None] * len(texts)
        return [self.of(domain, side) + text for domain, text in zip(owners, texts, strict=True)]
