"""What became of judgements that could not do what they say, with file and row."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.formats.negatives import Negatives
from stages.filter.judgements import BY_PAIR, NOT_OVERRULED, Judgements, Matched, verdicts


def about_no_pair(judgements: Judgements, numbers: NDArray[np.int64]) -> list[str]:
    """Say which judgements are about texts that no domain's training pairs have any more, or never had."""
    places = [judgements.places[number] for number in numbers]
    return [f"{place}: no domain has training pairs with this query and this document" for place in places]


def overruled(
    judgements: Judgements, matched: Mapping[str, Matched], folder: Path, pairs: Mapping[str, int]
) -> list[str]:
    """Say which judgements a training pair or another judgement contradicts.

    ``folder`` has the negatives of each domain, and ``pairs`` is how many training pairs it has.
    """
    told = []
    for domain, about in matched.items():
        if about.relevant.all():  # or none
            continue
        negatives = Negatives.read(folder, domain, pairs[domain])
        by = verdicts(about, negatives.query_class, negatives.document_class)[2]
        for number, other in zip(about.numbers[by != NOT_OVERRULED], by[by != NOT_OVERRULED], strict=True):
            because = (
                f"but a training pair of '{domain}' joins them, or duplicates; remove that pair, or this row"
                if other == BY_PAIR
                else f"but {judgements.places[other]} says that it is, which counts; correct one of the two"
            )
            told.append(f"{judgements.places[number]}: says that the document is not relevant, {because}")
    return told
