"""Shards: Arrow files of training batches with false-negative masks, and the manifest that describes them."""

from batchwright.formats.shards.batch import NAMES, REASONS, UNKNOWN, pack_mask, pack_reasons, read_reasons, unpack_mask
from batchwright.formats.shards.manifest import EpochSummary, Manifest, Shard, SmallDomain
from batchwright.formats.shards.shard_set import SHARD_SCHEMA, ShardSet, shard_name, write_shard

__all__ = [
    "NAMES",
    "REASONS",
    "SHARD_SCHEMA",
    "UNKNOWN",
    "EpochSummary",
    "Manifest",
    "Shard",
    "ShardSet",
    "SmallDomain",
    "pack_mask",
    "pack_reasons",
    "read_reasons",
    "shard_name",
    "unpack_mask",
    "write_shard",
]
