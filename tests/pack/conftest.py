"""A corpus that has been clustered and filtered, and the stage in this process."""

from pathlib import Path

import pytest

from stages.pack import __main__ as pack
from tests.helpers import topic_pairs
from tests.pack.corpora import RunPack, prepare, with_duplicates


@pytest.fixture
def corpus(workspace: Path) -> Path:
    """Domains ``birds`` (80 pairs, with duplicates) and ``fish`` (45)."""
    prepare(birds=with_duplicates(topic_pairs(50)), fish=topic_pairs(45, seed=1))
    return workspace


@pytest.fixture
def run_pack(monkeypatch: pytest.MonkeyPatch) -> RunPack:
    """``python -m stages.pack POLICY``."""

    def run(policy: str) -> str:
        monkeypatch.setattr("sys.argv", ["stages.pack", policy])
        return pack.main()

    return run
