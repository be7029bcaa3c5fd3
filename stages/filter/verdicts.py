"""Find what judgements say about the pairs of a domain: texts are matched by their normal form."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import fingerprint, text_keys
from batchwright.core.normal_form import normal_form
from batchwright.core.spill import find_keys, key_words, sort_keys
from batchwright.formats.pairs import domains, scan_texts
from batchwright.formats.prefixes import SIDES
from stages.filter.judgements import Judgements


@dataclass(frozen=True, kw_only=True)
class Matched:
    """The judgements about a domain.

    ``numbers`` ``(m,)`` counts them among all judgements; ``rows`` ``(m, 2)`` is a training pair with such a query and
    one with such a document; ``relevant`` ``(m,)`` says whether the document answers the query.
    """

    numbers: NDArray[np.int64]
    rows: NDArray[np.int64]
    relevant: NDArray[np.bool_]

    def fingerprint(self) -> str:
        """Changes whenever what is said about the domain's rows does."""
        return fingerprint(self.rows.tolist(), self.relevant.tolist())


NOTHING = Matched(numbers=np.empty(0, np.int64), rows=np.empty((0, 2), np.int64), relevant=np.empty(0, bool))


def match_all(judgements: Judgements, folder: Path) -> tuple[dict[str, Matched], int]:
    """Return the judgements about each domain of a pairs folder, and how many are about no domain."""
    matched = {domain: match(judgements, folder, domain) for domain in domains(folder)}
    about = np.unique(np.concatenate([each.numbers for each in matched.values()]))
    return matched, len(judgements) - len(about)


def match(judgements: Judgements, folder: Path, domain: str) -> Matched:
    """Return the judgements whose query and document are both among the texts of a domain's training pairs."""
    found = []
    for side, keys in zip(SIDES, (judgements.queries, judgements.documents), strict=True):
        words = key_words(text_keys(map(normal_form, scan_texts(folder, domain, side, "train"))))
        order = sort_keys(words)
        places = find_keys(words[:, order], keys)
        found.append(np.where(places < 0, -1, np.append(order, -1)[places]))
    rows = np.stack(found, axis=1)
    numbers = np.flatnonzero((rows >= 0).all(axis=1))
    return Matched(numbers=numbers, rows=rows[numbers], relevant=judgements.relevant[numbers])


def verdicts(
    matched: Matched, query_class: NDArray[np.int32], document_class: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.bool_], int]:
    """Return ``judged`` and ``relevant`` as ``Negatives`` has them, and how many judgements were overruled.

    A training pair overrules a judgement that its document is irrelevant; where judgements contradict each other, the
    document is relevant. So it is never used as a negative where somebody says that it answers the query.
    """
    classes = np.stack([query_class, document_class], axis=1)
    cells = np.stack([query_class[matched.rows[:, 0]], document_class[matched.rows[:, 1]]], axis=1)
    every, of = np.unique(np.concatenate([classes, cells]), axis=0, return_inverse=True)
    of_pairs, of_cells = np.split(of.reshape(-1), [len(classes)])
    paired, relevant, mentioned = (np.zeros(len(every), bool) for _ in range(3))
    paired[of_pairs] = True
    mentioned[of_cells] = True
    relevant[of_cells[matched.relevant]] = True
    overruled = ~matched.relevant & (paired | relevant)[of_cells]
    new = mentioned & ~paired
    return every[new], relevant[new], int(np.count_nonzero(overruled))
