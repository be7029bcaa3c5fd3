"""Hardness: how hard the batches of each policy are, and how much of them is masked."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from batchwright.core.errors import InputError
from batchwright.core.paths import RESULTS
from stages.report import charts
from stages.report.records import Record, read_record, read_rows
from stages.report.section import Section, show_chart, show_long_table, show_table, side_by_side
from stages.report.table import NONE, Table, share


class Batch(Record):
    """One row of ``results/pack/POLICY.tsv``."""

    domain: str
    hardness: float
    masked_share: float


class PackSummary(Record):
    """``results/pack/POLICY.json``; the measures are means over batches."""

    batches: int
    left_over: int
    hardness: float
    unmasked_hardness: float
    masked_share: float
    masked_by: dict[str, float]


def section() -> Section:
    """Return histograms next to means, and hardness by domain below."""
    batches = read_batches()
    histograms = charts.chart(
        lambda axes: draw_hardness(axes, batches), f"Histograms of the hardness of {' and of '.join(batches)} batches."
    )
    means = show_table(_means_table(read_summaries()), "Means over batches; pairs left over did not fill a batch")
    return Section(
        id="hardness",
        title="Hardness of batches",
        intro="Hardness is the mean similarity of queries to the other documents in their batch; further right is "
        "harder. “Unmasked” hardness leaves out the masked negatives.",
        parts=[side_by_side(show_chart(histograms), means), show_long_table(_by_domain(batches), "Hardness by domain")],
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


def draw_hardness(axes: Axes, batches: Mapping[str, Iterable[Batch]]) -> None:
    """Draw a histogram of the hardness of each policy's batches."""
    values = {policy: np.array([batch.hardness for batch in own]) for policy, own in batches.items()}
    bins = charts.bins(np.concatenate(list(values.values())))
    for policy, own in values.items():
        axes.hist(own, bins=bins, color=charts.colour(policy), alpha=0.65, label=policy, histtype="stepfilled")
    axes.set(xlabel="hardness of a batch", ylabel="batches")
    axes.legend()


def _means_table(summaries: Mapping[str, PackSummary]) -> Table:
    """One column per policy."""
    packed = summaries.values()
    reasons = sorted({reason for summary in packed for reason in summary.masked_by})
    rows = [
        ["Batches", *(f"{summary.batches:,}" for summary in packed)],
        ["Hardness", *(share(summary.hardness) for summary in packed)],
        ["Hardness, unmasked negatives", *(share(summary.unmasked_hardness) for summary in packed)],
        ["Negatives masked", *(f"{summary.masked_share:.1%}" for summary in packed)],
        *(
            [f"… as {reason.replace('_', ' ')}", *(f"{summary.masked_by.get(reason, 0):.2%}" for summary in packed)]
            for reason in reasons
        ),
        ["Pairs left over", *(f"{summary.left_over:,}" for summary in packed)],
    ]
    return Table(header=["All epochs", *summaries], rows=rows)


def _by_domain(batches: Mapping[str, Iterable[Batch]]) -> Table:
    """One row per domain: number, mean hardness and masked share of each policy's batches."""
    cells = {policy: _domain_cells(own) for policy, own in batches.items()}
    rows = [
        [domain, *(cell for of_policy in cells.values() for cell in of_policy.get(domain, [NONE] * 3))]
        for domain in sorted({domain for of_policy in cells.values() for domain in of_policy})
    ]
    groups = [("", 1), *((policy, 3) for policy in batches)]
    return Table(header=["Domain"] + ["Batches", "Hardness", "Masked"] * len(batches), groups=groups, rows=rows)


def _domain_cells(batches: Iterable[Batch]) -> dict[str, list[str]]:
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
