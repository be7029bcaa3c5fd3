"""The data: what became of every row of every source, which epochs are hard and why, and how hard their batches are."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from batchwright.formats.negatives import EVERY_PAIR
from stages.report import charts
from stages.report.page import Section, show_chart, show_long_table, show_table, side_by_side
from stages.report.records import (
    Ingested,
    PackedBatch,
    PackSummary,
    read_filtered,
    read_ingested,
    read_pack_summaries,
    read_packed_batches,
)
from stages.report.table import NONE, Table, share

MEASURES = ["Batches", "Hardness", "Masked"]

Batches = Mapping[str, Sequence[PackedBatch]]
"""All batches of each policy."""


def counts() -> Section:
    """Return tables of sources and domains."""
    ingested = read_ingested()
    return Section(
        id="counts",
        title="Counts",
        intro="Every row of a source either becomes a pair or is rejected for a stated reason. Pairs are split by "
        "query, and by group where sources say one, so that neither is in two splits.",
        parts=[
            show_table(_source_table(ingested), "Rows of each source"),
            show_long_table(_domain_table(ingested), "Pairs of each domain"),
        ],
    )


def _source_table(ingested: Ingested) -> Table:
    rows = []
    for name, count in sorted(ingested.sources.items(), key=lambda source: int(source[0].split()[0])):
        reasons = [f"{reason} {number:,}" for reason, number in Counter(count.rejected).most_common()]
        rejected = sum(count.rejected.values())
        label = name.partition(" ")[2]
        rows.append([label, f"{count.rows:,}", f"{count.out:,}", f"{rejected:,}", ", ".join(reasons) or NONE])
    return Table(header=["Source", "In", "Out", "Rejected", "Reasons"], rows=rows, words=frozenset({0, 4}))


def _domain_table(ingested: Ingested) -> Table:
    rows = [
        [name, f"{count.train:,}", f"{count.dev:,}", f"{count.test:,}", f"{count.queries:,}", f"{count.documents:,}"]
        for name, count in sorted(ingested.domains.items())
    ]
    return Table(header=["Domain", "Train", "Dev", "Test", "Unique queries", "Unique documents"], rows=rows)


def hardness() -> Section:
    """Return the hardness of each epoch, drawn, as means and by domain; which epochs are hard, and what is masked."""
    batches, summaries = read_packed_batches(), read_pack_summaries()
    drawn = charts.chart(
        lambda axes: _draw_epochs(axes, batches), f"Hardness of the batches of each epoch: {' and '.join(batches)}."
    )
    recipe, limits = _recipe(summaries), _limits()
    domains = {batch.domain for packed in batches.values() for batch in packed}
    return Section(
        id="hardness",
        title="Hardness of batches",
        intro="Hardness is the mean similarity of queries to the other documents in their batch, without the masked "
        "ones; higher is harder. Each dot is the median of an epoch's batches, the thick line holds half of them and "
        "the thin line nine in ten.",
        parts=[
            side_by_side(show_chart(drawn), show_long_table(_by_epoch(batches), "Means over the batches of an epoch")),
            *([show_long_table(recipe, "Which epochs of a domain are hard, and why")] if recipe.rows else []),
            *([show_long_table(limits, "From which likeness on pairs mask each other")] if limits.rows else []),
            show_long_table(
                _reasons(summaries), "Why negatives are masked, all epochs; pairs left over filled no batch"
            ),
            *([show_long_table(_by_domain(batches), "Hardness by domain and epoch")] if len(domains) > 1 else []),
        ],
    )


def _draw_epochs(axes: Axes, batches: Batches) -> None:
    """Draw, for each epoch and policy, the median hardness of the batches and the ranges of half and 90% of them."""
    epochs: set[int] = set()
    for number, (policy, packed) in enumerate(batches.items()):
        by_epoch = _grouped(packed, lambda batch: batch.epoch)
        epochs |= by_epoch.keys()
        positions = np.array(list(by_epoch)) + 0.16 * (number - (len(batches) - 1) / 2)
        values = [[batch.unmasked_hardness for batch in of_epoch] for of_epoch in by_epoch.values()]
        low, first, median, third, high = np.array([np.percentile(each, (5, 25, 50, 75, 95)) for each in values]).T
        colour = charts.colour(policy)
        axes.vlines(positions, low, high, color=colour, linewidth=1.5)
        axes.vlines(positions, first, third, color=colour, linewidth=6, alpha=0.6)
        axes.plot(positions, median, "o", color=colour, markersize=7, label=policy)
    axes.set(xlabel="epoch", ylabel="hardness of a batch", ylim=(0, None), xlim=(-0.5, max(epochs) + 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    charts.legend_above(axes)


def _by_epoch(batches: Batches) -> Table:
    """One row per policy and epoch."""
    rows = [
        [f"{policy}, epoch {epoch}", *_means(of_epoch)]
        for policy, packed in batches.items()
        for epoch, of_epoch in _grouped(packed, lambda batch: batch.epoch).items()
    ]
    return Table(header=["Epoch", *MEASURES], rows=rows)


def _recipe(summaries: Mapping[str, PackSummary]) -> Table:
    """One row per domain for which the stage ``pack`` decided which epochs are hard."""
    rows = [
        [name, ", ".join("hard" if part else "random" for part in domain.cluster_share), domain.because]
        for name, domain in sorted(summaries["contextual"].domains.items())
        if domain.because
    ]
    return Table(header=["Domain", "Epochs", "Because"], rows=rows, words=frozenset({0, 1, 2}))


def _limits() -> Table:
    """One row per domain with a limit of likeness, or in which ``auto`` looked for one."""
    rows = [
        [name, NONE if domain.likeness is None else f"{domain.likeness:.2f}", domain.no_limit_because]
        for name, domain in sorted(read_filtered().items())
        if domain.no_limit_because or (domain.likeness is not None and domain.likeness > EVERY_PAIR)
    ]
    return Table(header=["Domain", "Limit", "No limit found because"], rows=rows, words=frozenset({0, 2}))


def _reasons(summaries: Mapping[str, PackSummary]) -> Table:
    """One row per policy: shares of negatives that are masked, by reason."""
    reasons = sorted({reason for summary in summaries.values() for reason in summary.masked_by})
    rows = [
        [policy, *(f"{summary.masked_by.get(reason, 0):.2%}" for reason in reasons), f"{summary.left_over:,}"]
        for policy, summary in summaries.items()
    ]
    return Table(header=["Batches", *(reason.replace("_", " ") for reason in reasons), "Pairs left over"], rows=rows)


def _by_domain(batches: Batches) -> Table:
    """One row per domain and epoch, with the measures of each policy."""
    grouped = {
        policy: _grouped(packed, lambda batch: (batch.domain, batch.epoch)) for policy, packed in batches.items()
    }
    rows = [
        [
            f"{domain}, epoch {epoch}",
            *(cell for by_place in grouped.values() for cell in _means(by_place.get((domain, epoch)))),
        ]
        for domain, epoch in sorted({place for by_place in grouped.values() for place in by_place})
    ]
    groups = [("", 1), *((policy, len(MEASURES)) for policy in batches)]
    return Table(header=["Domain", *MEASURES * len(batches)], groups=groups, rows=rows)


def _grouped(batches: Iterable[PackedBatch], key: Callable[[PackedBatch], Any]) -> dict[Any, list[PackedBatch]]:
    """Return the batches by ``key``, in the order of the keys."""
    return {value: list(group) for value, group in groupby(sorted(batches, key=key), key)}


def _means(batches: Sequence[PackedBatch] | None) -> list[str]:
    """Return the ``MEASURES`` of some batches."""
    if not batches:
        return [NONE] * len(MEASURES)
    hardness = float(np.mean([batch.unmasked_hardness for batch in batches]))
    masked = float(np.mean([batch.masked_share for batch in batches]))
    return [f"{len(batches):,}", share(hardness), f"{masked:.1%}"]
