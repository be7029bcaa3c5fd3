"""Measures of a model that steps take before they train it: columns of their rows, so that checkpoints keep them."""

from collections.abc import Mapping, Sequence

from trainers.common.checkpoint import Row


def columns(prefix: str, measures: Mapping[str, float | int]) -> Row:
    """Return the measures as columns of a step's row."""
    return {f"{prefix}{name}": value for name, value in measures.items()}


def measured(prefix: str, curve: Sequence[Row]) -> list[Row]:
    """Return what the steps of a curve measured, a row per step that did, named by the steps before it."""
    found = [
        {"step": int(row["step"]) - 1}
        | {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)}
        for row in curve
    ]
    return [row for row in found if len(row) > 1]
