"""Prints how two shard sets differ."""

from typing import Any

from batchwright.inspect.diff import EXAMPLES, Difference
from batchwright.inspect.terminal import Terminal, cut, number, plain


def diff_lines(found: Difference, terminal: Terminal) -> list[str]:
    """Lay out a difference."""
    names = [f"A  {plain(found.a)}", f"B  {plain(found.b)}"]
    return [
        *map(terminal.bold, names),
        *_parameters(found, terminal),
        "",
        terminal.bold("Pairs") + f"  {found.pairs.a:,} in A, {found.pairs.b:,} in B, {found.both:,} in both",
        *_pairs("lost", found.lost, found, terminal),
        *_pairs("gained", found.gained, found, terminal),
        "",
        terminal.bold("Meetings") + "  of two pairs in a batch",
        f"of A's, {_share(found.meet_in_both.a)} take place in B too; of B's, {_share(found.meet_in_both.b)} in A",
        "",
        terminal.bold("Batches by domain and epoch"),
        *_groups(found, terminal),
        "",
        terminal.bold("Masked share of negatives, by reason"),
        *terminal.table(
            ["reason", "A", "B"],
            [[each.name.replace("_", " "), _share(each.a), _share(each.b)] for each in found.masked_by],
        ),
    ]


def _parameters(found: Difference, terminal: Terminal) -> list[str]:
    if not found.parameters:
        return ["", "Same policy, seed, models and parameters of packing"]
    rows = [[each.name, _value(each.a), _value(each.b)] for each in found.parameters]
    return ["", *terminal.table(["differs", "A", "B"], rows, texts=2)]


def _pairs(what: str, ids: dict[str, list[str]], found: Difference, terminal: Terminal) -> list[str]:
    lines = []
    for domain, own in ids.items():
        lines.append(f"{len(own):,} {what} in {plain(domain)}")
    shown = sorted(name for own in ids.values() for name in own)[:EXAMPLES]
    return [
        *lines,
        *(terminal.dim(f"    {plain(name[:12])}  ") + cut(found.examples[name], terminal.width - 18) for name in shown),
    ]


def _groups(found: Difference, terminal: Terminal) -> list[str]:
    rows = [
        [
            *(group.domain, str(group.epoch), _value(group.batches.a), _value(group.batches.b)),
            *(number(group.hardness.a), number(group.hardness.b)),
            *(_share(group.masked_share.a), _share(group.masked_share.b)),
        ]
        for group in found.groups
    ]
    header = ["domain", "epoch", "batches A", "B", "hardness A", "B", "masked A", "B"]
    return terminal.table(header, rows)


def _value(value: Any) -> str:
    return "-" if value is None else str(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"
