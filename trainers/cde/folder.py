"""CDE models on disk: sentence-transformers folders that bring the code of their module along."""

import json
import shutil
from pathlib import Path
from typing import cast

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from formats.errors import InputError
from formats.models import loading
from formats.prefixes import Prefix, Prefixes
from trainers.cde.contextual_encoder import ContextualEncoder
from trainers.cde.params import Params
from trainers.sentence_model import check_length, load_model, save_model

CODE = ("contextual_encoder.py", "backbones.py")


def start_from(start: Path, params: Params) -> ContextualEncoder:
    """An encoder that begins as the model ``start``, read as ``params`` say.

    Of a CDE folder all that was trained is taken over, but not the context, which was fitted to a corpus. Of another
    sentence-transformers model both stages begin as its encoder, its pooling aside.

    Raises:
        InputError: there is no such model, it cannot read context vectors, it takes fewer tokens, or it was trained
            with another ``context_reads_text``.
    """
    if is_contextual(start):
        return _go_on_from(start, params)
    first, second = (load_model(start, params.max_length, "cpu") for _ in range(2))
    if not isinstance(first[0], Transformer):
        raise InputError(f"model '{start}': begins with {type(first[0]).__name__}; CDE needs a transformer encoder")
    try:
        stages = [cast(PreTrainedModel, model[0].model) for model in (first, second)]
        return _encoder(stages[0], stages[1], first.tokenizer, params)
    except ValueError as error:
        raise InputError(f"model '{start}': {error}") from None


def _go_on_from(start: Path, params: Params) -> ContextualEncoder:
    model = load_contextual(start, "cpu").float()
    check_length(start, model, params.max_length)
    trained = cast(ContextualEncoder, model[0])
    if trained.context_reads_text != params.context_reads_text:
        needed = str(trained.context_reads_text).lower()
        raise InputError(
            f"model '{start}': was trained with context_reads_text {needed}; "
            f"set parameter 'train.cde.context_reads_text' to {needed}, or start from another model"
        )
    encoder = _encoder(trained.first, trained.second, trained.tokenizer, params)
    encoder.null = trained.null
    return encoder


def _encoder(
    first: PreTrainedModel, second: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, params: Params
) -> ContextualEncoder:
    return ContextualEncoder(
        first,
        second,
        tokenizer,
        documents=params.documents,
        max_seq_length=params.max_length,
        unpooled_prefixes=[] if params.pool_prefix else _texts(params.prefixes),
        context_reads_text=params.context_reads_text,
    )


def is_contextual(folder: Path) -> bool:
    """Whether ``save_contextual`` wrote the folder."""
    return (folder / ContextualEncoder.config_file_name).exists()


def load_contextual(folder: Path, device: str | None = None) -> SentenceTransformer:
    """Load a folder with this project's code, not with what lies in the folder.

    Raises:
        InputError: the folder is damaged.
    """
    with loading(f"model '{folder}'"):
        encoder = ContextualEncoder.load(str(folder), local_files_only=True)
        config = json.loads((folder / "config_sentence_transformers.json").read_text(encoding="utf-8"))
    return SentenceTransformer(modules=[encoder], prompts=config["prompts"], device=device)


def save_contextual(model: SentenceTransformer, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``; sentence-transformers can load it where this project is not installed."""
    save_model(model, folder, prefix)
    for name in CODE:
        shutil.copy(Path(__file__).with_name(name), folder)
    file = folder / "modules.json"
    modules = json.loads(file.read_text(encoding="utf-8"))
    modules[0]["type"] = f"{Path(CODE[0]).stem}.{ContextualEncoder.__name__}"
    file.write_text(json.dumps(modules, indent=2), encoding="utf-8")


def _texts(prefixes: Prefixes) -> list[str]:
    every = [prefixes.default, *prefixes.domains.values()]
    return sorted({text for prefix in every for text in (prefix.query, prefix.document) if text})
