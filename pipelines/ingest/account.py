"""Accounts: how many rows of each source became pairs, and why the others, of all parts and domains, were rejected."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from pipelines.ingest.domain import DUPLICATE, MOVED, NEGATIVE_REASONS, read_rejects
from pipelines.ingest.read import REJECTED, PartRead
from pipelines.ingest.sources.labels import NO_MATCH

_SHOWN_REASONS = 3
_NO_FAULTS = (DUPLICATE, NO_MATCH)
"""Why rows are left out that nobody needs to correct."""
OF_PAIRS = (*NEGATIVE_REASONS, *MOVED.values())
"""What is told of rows that are pairs nevertheless."""
_ORDER = ["source", "row", "entry", "part", "reason", "text"]


def collect_rejected(
    parts: Sequence[tuple[int, PartRead]], of_domains: Iterable[tuple[Path, Sequence[int]]]
) -> pa.Table:
    """Return all rejects as ``REJECTED`` with the columns ``entry`` and ``part``, in order of source and row.

    ``of_domains`` are the folders that ``write_domain`` wrote to, each with the numbers of the domain's parts.
    """
    entries = np.array([entry for entry, _ in parts])
    rejects = [_with_origin(part.rejects(), np.array([number]), entries) for number, (_, part) in enumerate(parts)]
    for folder, numbers in of_domains:
        rejected = read_rejects(folder)
        rejects.append(_with_origin(rejected, np.array(numbers)[rejected["part"].to_numpy()], entries))
    return pa.concat_tables(rejects).sort_by([(key, "ascending") for key in _ORDER])


def _with_origin(rejected: pa.Table, parts: NDArray[np.int64], entries: NDArray[np.int64]) -> pa.Table:
    columns = rejected.select(REJECTED.names)
    for name, values in (("entry", entries[parts]), ("part", parts)):
        columns = columns.append_column(name, pa.array(np.broadcast_to(values, len(rejected)).astype(np.int32)))
    return columns


@dataclass
class Account:
    """Counts for one entry of ``ingest.sources``: ``rows`` in, ``pairs`` out, ``rejected`` by reason."""

    rows: int = 0
    pairs: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    negatives: Counter[str] = field(default_factory=Counter)
    """Hard negatives that were removed from pairs, by reason."""
    moved: Counter[str] = field(default_factory=Counter)
    """Pairs, or duplicates of some, that are in another split than their row says, by reason."""

    @property
    def faults(self) -> int:
        """Number of rejects, not counting those of ``_NO_FAULTS``."""
        return self.rejected.total() - sum(self.rejected[reason] for reason in _NO_FAULTS)

    def as_json(self) -> dict[str, object]:
        """The account as it appears in the results."""
        removed = {"negatives_removed": dict(self.negatives)} if self.negatives else {}
        moved = {"moved": dict(self.moved)} if self.moved else {}
        return {"in": self.rows, "out": self.pairs, "rejected": dict(self.rejected), **removed, **moved}


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
        of_pairs = account.negatives if group["reason"] in NEGATIVE_REASONS else account.moved
        counts = of_pairs if group["reason"] in OF_PAIRS else account.rejected
        counts[group["reason"]] += group["count_all"]
    for account in accounts:
        assert account.rows == account.pairs + account.rejected.total(), "in = out + rejected"
    return accounts


def check_rejects(labels: Sequence[str], accounts: Sequence[Account], rejected: pa.Table, most: float) -> None:
    """Raise InputError if more than the share ``most`` of a source's rows is faulty."""
    messages = [
        _explain(label, account, rejected.filter(pc.equal(rejected["entry"], entry)), most)
        for entry, (label, account) in enumerate(zip(labels, accounts, strict=True))
        if account.faults > most * account.rows
    ]
    if messages:
        raise InputError("\n".join(messages))


def commonest(reasons: Counter[str]) -> str:
    """Say the reasons that most rows are rejected for, and how many rows."""
    more = len(reasons) - _SHOWN_REASONS
    most = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{reason} ({count:,})" for reason, count in most[:_SHOWN_REASONS]]
    return ", ".join([*named, *([f"{more} more reasons"] if more > 0 else [])])


def _explain(label: str, account: Account, rejected: pa.Table, most: float) -> str:
    no_faults = pa.array([*_NO_FAULTS, *OF_PAIRS])
    faults = rejected.filter(pc.invert(pc.is_in(rejected["reason"], no_faults)))
    reasons = commonest(Counter(faults["reason"].to_pylist()))
    example = faults.slice(0, 1).to_pylist()[0]
    return (
        f"{label}: {account.faults:,} of {account.rows:,} rows ({account.faults / account.rows:.1%}) are not pairs, "
        f"more than ingest.max_reject_rate = {most:.1%}: {reasons}; for example {example['source']}, "
        f"row {example['row']}: {example['text'][:80]!r}. Correct the rows or this source's settings, or raise the rate"
    )
