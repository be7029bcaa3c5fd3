"""Does a stage's work one domain at a time, and again only for domains whose inputs have changed."""

from batchwright.by_domain.domains import (
    LARGE,
    Done,
    Metrics,
    Work,
    copy_files,
    do_domains,
    publish_domains,
)
from batchwright.by_domain.kept import forget_others, keep, kept
from batchwright.by_domain.kept_map import Map, unless_beam
from batchwright.by_domain.memory import at_once, of_pairs, pairs_of, texts_of
from batchwright.by_domain.spread import Spread, on_this_machine

__all__ = [
    "LARGE",
    "Done",
    "Map",
    "Metrics",
    "Spread",
    "Work",
    "at_once",
    "copy_files",
    "do_domains",
    "forget_others",
    "keep",
    "kept",
    "of_pairs",
    "on_this_machine",
    "pairs_of",
    "publish_domains",
    "texts_of",
    "unless_beam",
]
