"""Task prefixes: put before a text where it meets a model, never stored in the pairs."""

from typing import Literal

from formats.params import Params

Side = Literal["query", "document"]


class Prefix(Params):
    """What one domain puts before its texts, such as ``search_query: ``."""

    query: str = ""
    document: str = ""


class Prefixes(Params):
    """A model's prefixes: a default and the domains that differ from it."""

    default: Prefix = Prefix()
    domains: dict[str, Prefix] = {}

    def of(self, domain: str, side: Side) -> str:
        """The prefix of one side of one domain."""
        prefix = self.domains.get(domain, self.default)
        return prefix.query if side == "query" else prefix.document
