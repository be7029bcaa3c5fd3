"""Small folders of models, whose files fuzzers spoil."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from batchwright.formats.models import Prefix
from batchwright.retrievers import load_retriever
from batchwright.retrievers.cde.retriever import save_contextual
from pipelines.embed.handler import load_encoder
from pipelines.embed.params import EncoderParams
from tests.cde.encoders import encoder as contextual
from tests.faults.sources import Seed
from tests.tiny_models import save_bert
from tests.train.toys import describe


def model_seeds(folder: Path) -> Iterator[Seed]:
    """Write models below ``folder``; yield what each file is called, the file, and what reads its model."""
    torch.set_num_threads(1)
    made = save_bert(folder / "made")
    two_stages = SentenceTransformer(modules=[contextual()], device="cpu")
    save_contextual(two_stages, folder / "two stages", Prefix())
    kinds = (
        ("encoder", made, encoder),
        ("biencoder", made, load_retriever),
        ("cde", folder / "two stages", load_retriever),
    )
    for name, source, read in kinds:
        target = folder / name
        shutil.copytree(source, target, dirs_exist_ok=True)
        describe(target)
        for file in sorted(target.rglob("*")):
            if file.is_file():
                yield f"{name} {file.relative_to(target)}", file, lambda _, target=target, read=read: read(target)


def encoder(folder: Path) -> object:
    """Load a model as ``embed`` does."""
    return load_encoder(EncoderParams(name=str(folder), max_length=16, batch_size=8))
