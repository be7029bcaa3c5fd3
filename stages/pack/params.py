"""Parameters of the packing stage."""

from typing import Annotated, Literal

from pydantic import Field

from batchwright.core.params import Params
from batchwright.formats.cross_encoder import Reading


class JudgeParams(Reading):
    """Group ``pack.judge``."""

    model: str
    """A cross-encoder: ``package:NAME`` for an installed Python package, a folder such as ``raw/models/mine``, or a
    name on the hub."""
    below: float = Field(default=0.05, gt=0, lt=1)
    """It is asked about pairs that are less alike than the limit of ``filter.likeness`` by at most this."""
    above: float = Field(default=0, ge=0, lt=1)
    """And about pairs that are more alike than the limit by less than this."""
    margin: float = 0
    """The document d' of another pair is a false negative if it scores nearly as high as the query's own document:
    ``g(q, d') >= g(q, d) - margin``, where g is the cross-encoder's score before any sigmoid."""


class PackParams(Params):
    """Group ``pack``."""

    batch_size: int = Field(default=128, gt=1)
    """Pairs per batch, across all workers."""
    epochs: int = Field(default=4, gt=0)
    """Passes over the pairs, each with its own batches."""
    seeds: int = Field(default=1, gt=0)
    """How many sets of batches to make, each with the next seed from ``base.seed`` on, for runs with as many ``seeds``.
    The first is ``data/shards/POLICY``, further ones lie in ``seed-2``, ``seed-3``, ... there; measures are of the
    first."""
    cluster_share: Literal["auto"] | Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)] = "auto"
    """Share of a contextual batch that comes from one cluster, one value per epoch; later epochs repeat the last value.
    1 makes the hardest batches, 0.5 mixes two clusters, and 0 makes random batches: ``[0, 0, 1]`` starts with two
    random epochs. ``auto`` decides for each domain whether hard batches pay: if they do, batches consist of whole
    clusters in the second half of the epochs. A ``cluster_size`` of an eighth of a batch goes well with it: larger
    clusters hold more hard negatives, but fewer of them represent the rest of the domain worse."""
    left_over: Literal["drop", "refill"] = "drop"
    """What to do with the last pairs of a domain if they do not fill a batch: ``drop`` leaves them out of the epoch,
    ``refill`` completes the batch with pairs that the epoch has already used."""
    small_domains: Literal["refuse", "merge", "refill", "drop"] = "merge"
    """What to do with domains that cannot fill a batch: ``refuse`` stops and names them. ``merge`` packs them together,
    so that their batches hold pairs of several domains; of two such pairs, only equal texts make false negatives.
    ``refill`` completes a batch with the domain's own pairs, again and again, and masks the copies, as ``merge`` does
    if all of them cannot fill one. ``drop`` leaves them out. The manifest lists these domains."""
    weights: dict[str, Annotated[float, Field(gt=0)]] = {}
    """Number of passes over a domain in each epoch, 1 by default: 0.5 takes half of its batches, 2 takes each pair
    twice. Parts of a batch add up over the epochs: of a single batch, 0.5 takes it in every other epoch."""
    hard_negatives: int | None = Field(default=None, gt=0)
    """How many of a pair's hard negatives are in a batch: each time the pair comes, the next ones. Null puts all into
    every batch, which takes much room if there are many."""
    judge: JudgeParams | None = None
    """A cross-encoder that decides where ``filter.likeness`` is in doubt; null asks none."""
    batches_per_shard: int = Field(default=64, gt=0)
    """Batches per shard; each shard is one Arrow file."""
