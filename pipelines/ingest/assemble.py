"""Turns the files that workers wrote to scratch into the stage's artifacts."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from batchwright.formats.pairs import PAIRS_SCHEMA, pairs_file, write_table
from pipelines.ingest.candidates import CANDIDATES, REJECTED
from pipelines.ingest.split import dev, held_out


def read_candidates(folder: Path) -> dict[str, pa.Table]:
    """Read the unique pairs of each domain, in id order, memory-mapped."""
    found: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for file in sorted(folder.glob("*.arrow")):  # reading buckets in order yields ids in order
        for batch in _batches(file):
            found[batch["domain"][0].as_py()].append(batch)
    return {domain: pa.Table.from_batches(batches, CANDIDATES) for domain, batches in sorted(found.items())}


def read_rejected(folder: Path, *more: pa.Table) -> pa.Table:
    """Read all rejects, and put them and ``more`` in the order of source, row and the remaining columns."""
    batches = [batch for file in folder.glob("*.arrow") for batch in _batches(file)]
    keys = ["source", "row", "entry", "part", "reason", "text"]
    found = pa.concat_tables([pa.Table.from_batches(batches, REJECTED), *more])
    return found.sort_by([(key, "ascending") for key in keys])


def write_pairs(folder: Path, domain: str, pairs: pa.Table, test_share: float, dev_share: float) -> dict[str, int]:
    """Write a domain's pairs with their split, and return counts of pairs and unique texts."""
    query_hashes = pairs["query_hash"].to_numpy()
    is_test, is_dev = held_out(query_hashes, test_share), dev(query_hashes, dev_share)
    split = pc.case_when(pc.make_struct(pa.array(is_test), pa.array(is_dev)), "test", "dev", "train")
    write_table(pairs_file(folder, domain), pairs.append_column("split", split), PAIRS_SCHEMA)
    return {
        "train": int((~is_test & ~is_dev).sum()),
        "dev": int(is_dev.sum()),
        "test": int(is_test.sum()),
        "queries": len(np.unique(query_hashes)),
        "documents": len(np.unique(pairs["document_hash"].to_numpy())),
    }


def _batches(file: Path) -> list[pa.RecordBatch]:
    reader = pa.ipc.open_file(pa.memory_map(str(file)))
    return [reader.get_batch(index) for index in range(reader.num_record_batches)]
