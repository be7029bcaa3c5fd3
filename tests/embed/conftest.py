"""Fixtures that run the embed stage in this process, with the tiny encoder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.embed import chunks
from stages import embed as stage
from tests.helpers import topic_pairs, write_pairs, write_params

RunEmbed = Callable[[], str]


@pytest.fixture
def encoder(workspace: Path, tiny_bert: Path) -> dict[str, Any]:
    """The entry ``embed.models.tiny`` in ``params.yaml``."""
    folder = shutil.copytree(tiny_bert, "raw/models/tiny")
    encoder = {"name": folder, "max_length": 16, "batch_size": 8}
    write_params(workspace, {"embed.models": {"tiny": encoder}, "filter.vectors": "tiny", "cluster.vectors": "tiny"})
    return encoder


@pytest.fixture
def corpus(workspace: Path, encoder: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Domains ``birds`` (40 pairs) and ``fish/small`` (30), cut into chunks of 16 texts on average."""
    monkeypatch.setattr(chunks, "MEAN_TEXTS", 16)
    monkeypatch.setattr(chunks, "MOST_TEXTS", 64)
    write_pairs("birds", topic_pairs(40))
    write_pairs("fish/small", topic_pairs(30, seed=1))
    return workspace


@pytest.fixture
def run_embed() -> RunEmbed:
    """Run ``python -m stages embed`` in this process."""
    return stage.main
