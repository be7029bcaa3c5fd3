"""Shards: Arrow files of training batches with false-negative masks, and the manifest that describes them."""

from batchwright.formats.shards.batch import (
    NAMES,
    REASONS,
    UNKNOWN,
    pack_mask,
    pack_reasons,
    read_reasons,
    read_scores,
    unpack_mask,
)
from batchwright.formats.shards.manifest import EpochSummary, Manifest, Shard, SmallDomain
from batchwright.formats.shards.shard_set import (
    ANNOTATED_SCHEMA,
    SCORED_ANNOTATED_SCHEMA,
    SCORED_SCHEMA,
    SHARD_SCHEMA,
    ShardSet,
    completed,
    extended,
    format_with,
    shard_name,
    unscored,
    write_shard,
)

__all__ = [
    "ANNOTATED_SCHEMA",
    "NAMES",
    "REASONS",
    "SCORED_ANNOTATED_SCHEMA",
    "SCORED_SCHEMA",
    "SHARD_SCHEMA",
    "UNKNOWN",
    "EpochSummary",
    "Manifest",
    "Shard",
    "ShardSet",
    "SmallDomain",
    "completed",
    "extended",
    "format_with",
    "pack_mask",
    "pack_reasons",
    "read_reasons",
    "read_scores",
    "shard_name",
    "unpack_mask",
    "unscored",
    "write_shard",
]
