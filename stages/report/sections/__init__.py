"""The sections of the page.

To add one, write a module with a function ``section`` that reads what it needs and returns a ``Section``, or ``None``
if there is nothing to show. Then add it to ``SECTIONS``.
"""

from collections.abc import Callable

from stages.report.section import Section
from stages.report.sections import (
    batches,
    changes,
    clusters,
    counts,
    curves,
    examples,
    experiments,
    hardness,
    outcome,
    pipeline,
    pretraining,
    recipe,
    results,
    times,
    tokens,
)

SECTIONS: list[Callable[[], Section | None]] = [
    outcome.section,
    changes.section,
    batches.section,
    hardness.section,
    examples.section,
    results.section,
    pipeline.section,
    counts.section,
    clusters.section,
    recipe.section,
    curves.section,
    pretraining.section,
    tokens.section,
    experiments.section,
    times.section,
]
