"""Tables of what came out before training."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from stages.report.collect import Batch, Ingested, Packed
from stages.report.table import NONE, Table, share


def source_counts(ingested: Ingested) -> Table:
    """Rows in, pairs out and rejects, in the order of the sources."""
    rows = []
    for name, count in sorted(ingested.sources.items(), key=lambda source: int(source[0].split()[0])):
        reasons = [f"{reason} {number:,}" for reason, number in Counter(count.rejected).most_common()]
        rejected = sum(count.rejected.values())
        label = name.partition(" ")[2]
        rows.append([label, f"{count.rows:,}", f"{count.out:,}", f"{rejected:,}", ", ".join(reasons) or NONE])
    return Table(header=["Source", "In", "Out", "Rejected", "Why"], rows=rows, words=frozenset({0, 4}))


def domain_counts(ingested: Ingested) -> Table:
    """Pairs and unique texts of each domain."""
    rows = [
        [name, f"{count.train:,}", f"{count.test:,}", f"{count.queries:,}", f"{count.documents:,}"]
        for name, count in sorted(ingested.domains.items())
    ]
    return Table(header=["Domain", "Train", "Test", "Unique queries", "Unique documents"], rows=rows)


def hardness_table(packed: Mapping[str, Packed]) -> Table:
    """A column a policy."""
    summaries = [batches.summary for batches in packed.values()]
    reasons = sorted({reason for summary in summaries for reason in summary.masked_by})
    rows = [
        ["Batches", *(f"{summary.batches:,}" for summary in summaries)],
        ["Hardness", *(share(summary.hardness) for summary in summaries)],
        ["Hardness, unmasked negatives", *(share(summary.unmasked_hardness) for summary in summaries)],
        ["Negatives masked", *(f"{summary.masked_share:.1%}" for summary in summaries)],
        *(
            [f"… as {reason.replace('_', ' ')}", *(f"{summary.masked_by.get(reason, 0):.2%}" for summary in summaries)]
            for reason in reasons
        ),
        ["Pairs left over", *(f"{summary.left_over:,}" for summary in summaries)],
    ]
    return Table(header=["All epochs", *packed], rows=rows)


def cluster_table(sizes: Mapping[str, NDArray[np.int64]], wanted: int) -> Table:
    """Number and extremes; an extreme with the first domain that has it."""
    smallest = min(sizes, key=lambda domain: sizes[domain].min())
    largest = max(sizes, key=lambda domain: sizes[domain].max())
    rows = [
        ["cluster_size", f"{wanted:,}"],
        [f"Smallest, in {smallest}", f"{sizes[smallest].min():,}"],
        [f"Largest, in {largest}", f"{sizes[largest].max():,}"],
    ]
    return Table(header=[f"{sum(len(own) for own in sizes.values()):,} clusters", "Pairs"], rows=rows)


def hardness_by_domain(packed: Mapping[str, Packed]) -> Table:
    """A row a domain, mean hardness and masked share of each policy."""
    means = {policy: _means(batches.batches) for policy, batches in packed.items()}
    rows = [
        [domain, *(cell for of_policy in means.values() for cell in of_policy.get(domain, [NONE] * 3))]
        for domain in sorted({domain for of_policy in means.values() for domain in of_policy})
    ]
    groups = [("", 1), *((policy, 3) for policy in packed)]
    return Table(header=["Domain"] + ["Batches", "Hardness", "Masked"] * len(packed), groups=groups, rows=rows)


def _means(batches: Iterable[Batch]) -> dict[str, list[str]]:
    by_domain: dict[str, list[Batch]] = defaultdict(list)
    for batch in batches:
        by_domain[batch.domain].append(batch)
    return {
        domain: [
            f"{len(own):,}",
            share(sum(batch.hardness for batch in own) / len(own)),
            f"{sum(batch.masked_share for batch in own) / len(own):.1%}",
        ]
        for domain, own in by_domain.items()
    }
