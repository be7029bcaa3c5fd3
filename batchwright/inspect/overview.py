"""A shard set at a glance, and its worst batches."""

from dataclasses import dataclass

from batchwright.formats.shards import ShardSet
from batchwright.inspect.measures import Worst, by_domain, means, measure
from batchwright.inspect.terminal import Terminal, number, plain

TITLES = {
    "easiest": "far easier than others of their domain and epoch",
    "hardest": "far harder than others of their domain and epoch",
    "masked": "most of their negatives masked",
    "repeated": "most pairs met in an earlier epoch",
}


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A shard set, and the number of batches and mean measures of each domain and epoch."""

    shards: str
    policy: str
    batch_size: int
    batches: int
    epochs: int
    seed: int
    left_over: list[int]
    met_before: list[float]
    domains: list[dict[str, str | int | float]]


def overview(shards: ShardSet) -> Overview:
    """Summarise a shard set."""
    manifest = shards.manifest
    groups = by_domain(measure(shards))
    return Overview(
        shards=str(shards.folder),
        policy=manifest.policy,
        batch_size=manifest.batch_size,
        batches=manifest.batches,
        epochs=len(manifest.epochs),
        seed=manifest.seed,
        left_over=[sum(epoch.left_over.values()) for epoch in manifest.epochs],
        met_before=[epoch.met_before for epoch in manifest.epochs],
        domains=[
            {
                **{"domain": domain, "epoch": epoch, "batches": len(group), "first_batch": group[0].batch},
                **{**means(group), "rows_mostly_masked": sum(batch.rows_mostly_masked for batch in group)},
            }
            for (domain, epoch), group in groups.items()
        ],
    )


def overview_lines(found: Overview, terminal: Terminal) -> list[str]:
    """Lay out a summary."""
    head = f"{found.batches:,} {found.policy} batches of {found.batch_size} in {found.epochs} epochs, seed {found.seed}"
    epochs = zip(found.left_over, found.met_before, strict=True)
    rows = [
        [
            *(str(each["domain"]), str(each["epoch"]), f"{each['batches']:,}", str(each["first_batch"])),
            *(number(float(each["hardness"])), f"{each['masked_share']:.1%}", f"{each['rows_mostly_masked']:,}"),
        ]
        for each in found.domains
    ]
    return [
        f"{terminal.bold(plain(found.shards))} · {plain(head)}",
        "",
        *terminal.table(
            ["domain", "epoch", "batches", "first batch", "hardness", "masked", "rows mostly masked"], rows
        ),
        "",
        *terminal.table(
            ["epoch", "pairs left over", "of two pairs in a batch, met before"],
            [[str(number), f"{left:,}", f"{met:.1%}"] for number, (left, met) in enumerate(epochs)],
        ),
    ]


def worst_lines(batches: list[Worst], by: str, terminal: Terminal) -> list[str]:
    """Lay out the worst batches."""
    rows = [
        [
            *(str(batch.batch), str(batch.epoch), batch.domain, number(batch.hardness), number(batch.unusual, "+")),
            *(f"{batch.masked_share:.1%}", f"{batch.met_before:.1%}"),
        ]
        for batch in batches
    ]
    return [
        terminal.bold(f"Worst batches: {TITLES[by]}"),
        *terminal.table(["batch", "epoch", "domain", "hardness", "than others", "masked", "met before"], rows),
    ]
