"""Hardness: how hard the batches of each epoch are, on both kinds of batches, and how much of them is masked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from batchwright.core.errors import InputError
from batchwright.core.paths import RESULTS
from stages.report import charts
from stages.report.records import Record, read_record, read_rows
from stages.report.section import Section, show_chart, show_long_table, side_by_side
from stages.report.table import NONE, Table, share

MEASURES = ["Batches", "Hardness", "Masked"]


class Batch(Record):
    """One row of ``results/pack/POLICY.tsv``."""

    epoch: int
    domain: str
    unmasked_hardness: float
    masked_share: float


class PackSummary(Record):
    """``results/pack/POLICY.json``; the measures are means over batches."""

    batches: int
    left_over: int
    masked_by: dict[str, float]


def section() -> Section:
    """Return the hardness of each epoch, first drawn, then as means; and hardness by domain."""
    batches = read_batches()
    drawn = charts.chart(
        lambda axes: draw_epochs(axes, batches),
        f"Hardness of the batches of each epoch: {' and '.join(batches)}.",
    )
    summaries = read_summaries()
    return Section(
        id="hardness",
        title="Hardness of batches",
        intro="Hardness is the mean similarity of queries to the other documents in their batch, without the masked "
        "ones; higher is harder. Each dot is the median of an epoch's batches, the thick line holds half of them and "
        "the thin line nine in ten.",
        parts=[
            side_by_side(show_chart(drawn), show_long_table(_by_epoch(batches), "Means over the batches of an epoch")),
            show_long_table(
                _reasons(summaries), "Why negatives are masked, all epochs; pairs left over filled no batch"
            ),
            show_long_table(_by_domain(batches), "Hardness by domain and epoch"),
        ],
    )


def read_summaries() -> dict[str, PackSummary]:
    """Read the means over batches of each policy."""
    return {file.stem: read_record(PackSummary, file, made_by="pack") for file in _files()}


def read_batches() -> dict[str, list[Batch]]:
    """Read all batches of each policy."""
    return {file.stem: read_rows(Batch, file.with_suffix(".tsv"), made_by="pack") for file in _files()}


def _files() -> list[Path]:
    """Return the metrics of every policy that was packed.

    Raises:
        InputError: there are none.
    """
    folder = RESULTS / "pack"
    if not (files := sorted({file.with_suffix(".json") for file in folder.glob("[!.]*")})):
        raise InputError(f"{folder}: no such results; run the stage 'pack' first")
    return files


def draw_epochs(axes: Axes, batches: Mapping[str, Iterable[Batch]]) -> None:
    """Draw, for each epoch and policy, the median hardness of the batches and the ranges of half and 90% of them."""
    epochs: set[int] = set()
    for number, (policy, own) in enumerate(batches.items()):
        by_epoch = _grouped(own, lambda batch: batch.epoch)
        epochs |= by_epoch.keys()
        places = np.array(list(by_epoch)) + 0.16 * (number - (len(batches) - 1) / 2)
        values = [[batch.unmasked_hardness for batch in of_epoch] for of_epoch in by_epoch.values()]
        low, first, median, third, high = np.array([np.percentile(each, (5, 25, 50, 75, 95)) for each in values]).T
        colour = charts.colour(policy)
        axes.vlines(places, low, high, color=colour, linewidth=1.5)
        axes.vlines(places, first, third, color=colour, linewidth=6, alpha=0.6)
        axes.plot(places, median, "o", color=colour, markersize=7, label=policy)
    axes.set(xlabel="epoch", ylabel="hardness of a batch", ylim=(0, None), xlim=(-0.5, max(epochs) + 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    charts.legend_above(axes)


def _by_epoch(batches: Mapping[str, Iterable[Batch]]) -> Table:
    """One row per policy and epoch."""
    rows = [
        [f"{policy}, epoch {epoch}", *_cells(of_epoch)]
        for policy, own in batches.items()
        for epoch, of_epoch in _grouped(own, lambda batch: batch.epoch).items()
    ]
    return Table(header=["Epoch", *MEASURES], rows=rows)


def _reasons(summaries: Mapping[str, PackSummary]) -> Table:
    """One row per policy: shares of negatives that are masked, by reason."""
    reasons = sorted({reason for summary in summaries.values() for reason in summary.masked_by})
    rows = [
        [
            policy,
            *(f"{summary.masked_by.get(reason, 0):.2%}" for reason in reasons),
            f"{summary.left_over:,}",
        ]
        for policy, summary in summaries.items()
    ]
    return Table(header=["Batches", *(reason.replace("_", " ") for reason in reasons), "Pairs left over"], rows=rows)


def _by_domain(batches: Mapping[str, Iterable[Batch]]) -> Table:
    """One row per domain and epoch, with the measures of each policy."""
    grouped = {policy: _grouped(own, lambda batch: (batch.domain, batch.epoch)) for policy, own in batches.items()}
    rows = [
        [
            f"{domain}, epoch {epoch}",
            *(cell for own in grouped.values() for cell in _cells(own.get((domain, epoch)))),
        ]
        for domain, epoch in sorted({place for own in grouped.values() for place in own})
    ]
    groups = [("", 1), *((policy, len(MEASURES)) for policy in batches)]
    return Table(header=["Domain", *MEASURES * len(batches)], groups=groups, rows=rows)


def _grouped(batches: Iterable[Batch], key: Callable[[Batch], Any]) -> dict[Any, list[Batch]]:
    """Return the batches by ``key``, in the order of the keys."""
    ordered = sorted(batches, key=key)
    return {place: list(own) for place, own in groupby(ordered, key)}


def _cells(batches: Sequence[Batch] | None) -> list[str]:
    """Return the ``MEASURES`` of some batches."""
    if not batches:
        return [NONE] * len(MEASURES)
    hardness, masked = (
        float(np.mean([getattr(batch, name) for batch in batches])) for name in ("unmasked_hardness", "masked_share")
    )
    return [f"{len(batches):,}", share(hardness), f"{masked:.1%}"]
