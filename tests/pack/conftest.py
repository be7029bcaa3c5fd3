"""A corpus that has been filtered and clustered, and the stage as a function."""

from pathlib import Path

import pytest

from stages.pack import stage as pack
from tests.helpers import topic_pairs
from tests.pack.corpora import RunPack, prepare, with_duplicates


@pytest.fixture
def corpus(workspace: Path) -> Path:
    """Domains ``birds`` (80 pairs, with duplicates) and ``fish`` (45)."""
    prepare(birds=with_duplicates(topic_pairs(50)), fish=topic_pairs(45, seed=1))
    return workspace


@pytest.fixture
def run_pack() -> RunPack:
    """Run ``python -m stages pack POLICY`` in this process."""
    return pack.main
