"""The sections of the page.

To add one, write a module with a function ``section`` that reads what it needs and returns a ``Section``, or ``None``
if there is nothing to show. Then add it to ``SECTIONS``.
"""

from collections.abc import Callable

from stages.report.section import Section
from stages.report.sections import (
    clusters,
    counts,
    curves,
    experiments,
    hardness,
    learning,
    pipeline,
    pretraining,
    recipe,
    results,
    tokens,
)

SECTIONS: list[Callable[[], Section | None]] = [
    results.section,
    pipeline.section,
    counts.section,
    clusters.section,
    hardness.section,
    recipe.section,
    learning.section,
    curves.section,
    pretraining.section,
    tokens.section,
    experiments.section,
]
