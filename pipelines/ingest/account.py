"""Accounts: how many rows of each source became pairs, and why the others were rejected."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from batchwright.core.errors import InputError
from pipelines.ingest.deduplicate import DUPLICATE
from pipelines.ingest.screen import REASONS as NEGATIVES
from pipelines.ingest.screen import of_rows

_SHOWN_REASONS = 3


@dataclass
class Account:
    """Counts for one entry of ``ingest.sources``: ``rows`` in, ``pairs`` out, ``rejected`` by reason."""

    rows: int = 0
    pairs: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    negatives: Counter[str] = field(default_factory=Counter)
    """Hard negatives that were removed from pairs, by reason."""

    @property
    def faults(self) -> int:
        """Number of rejects, not counting duplicates, which are not the source's fault."""
        return self.rejected.total() - self.rejected[DUPLICATE]

    def as_json(self) -> dict[str, object]:
        """The account as it appears in the results."""
        removed = {"negatives_removed": dict(self.negatives)} if self.negatives else {}
        return {"in": self.rows, "out": self.pairs, "rejected": dict(self.rejected), **removed}


def take_account(
    entries: int, rows: Iterable[tuple[int, int]], pairs: Iterable[tuple[int, int]], rejected: pa.Table
) -> list[Account]:
    """Compute the account of each entry from the number of ``rows`` and ``pairs`` of its parts, and all rejects."""
    accounts = [Account() for _ in range(entries)]
    for entry, count in rows:
        accounts[entry].rows += count
    for entry, count in pairs:
        accounts[entry].pairs += count
    for group in rejected.group_by(["entry", "reason"]).aggregate([([], "count_all")]).to_pylist():
        account = accounts[group["entry"]]
        counts = account.negatives if group["reason"] in NEGATIVES else account.rejected
        counts[group["reason"]] += group["count_all"]
    for account in accounts:
        assert account.rows == account.pairs + account.rejected.total(), "in = out + rejected"
    return accounts


def check_rejects(labels: Sequence[str], accounts: Sequence[Account], rejected: pa.Table, most: float) -> None:
    """Raise InputError if more than the share ``most`` of a source's rows is faulty."""
    messages = [
        _explain(label, account, of_rows(rejected.filter(pc.equal(rejected["entry"], entry))), most)
        for entry, (label, account) in enumerate(zip(labels, accounts, strict=True))
        if account.faults > most * account.rows
    ]
    if messages:
        raise InputError("\n".join(messages))


def _explain(label: str, account: Account, rejected: pa.Table, most: float) -> str:
    faults = rejected.filter(pc.not_equal(rejected["reason"], DUPLICATE))
    commonest = Counter(faults["reason"].to_pylist()).most_common(_SHOWN_REASONS)
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in commonest)
    example = faults.slice(0, 1).to_pylist()[0]
    return (
        f"{label}: {account.faults:,} of {account.rows:,} rows ({account.faults / account.rows:.1%}) are not pairs, "
        f"more than ingest.max_reject_rate = {most:.1%}: {reasons}; for example {example['source']}, "
        f"row {example['row']}: {example['text'][:80]!r}. Correct the rows or this source's settings, or raise the rate"
    )
