"""Pre-training jobs, and the corpus prepared for them."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from batchwright.core import runtime
from batchwright.core.atomic import atomic_dir, faults
from batchwright.core.fingerprint import files_fingerprint, fingerprint
from batchwright.formats.models import Prefixes, check_words, loading, locate_model, model_hash
from batchwright.formats.prompts import own_prefixes
from trainers.common.job import Job, job_storage, training_code, training_device
from trainers.pretraining.corpus import load_tokenizer, read_texts, special_tokens, train_vocabulary, write_corpus
from trainers.pretraining.params import NewEncoder, PretrainParams


@dataclass(frozen=True, kw_only=True)
class PretrainJob(Job):
    """A pre-training job.

    ``corpus`` is the folder with tokenizer and tokens. ``start_model`` is None if the encoder is new. ``prefixes`` are
    those of runs that start from the result. ``results`` is the folder for curves, which are written as ``NAME.tsv``
    and ``NAME-CURVE.tsv``.
    """

    params: PretrainParams
    start_model: Path | None
    prefixes: Prefixes
    corpus: Path
    results: Path


def plan_pretraining(
    *, name: str, seed: int, params: PretrainParams, pairs: Path, model: Path, results: Path, texts: Path | None = None
) -> PretrainJob:
    """Tokenise the texts of ``pairs`` and of ``texts``, which ``write_texts`` wrote, and build the job.

    A new encoder also gets a new vocabulary.

    The scratch folder, which holds the tokens, is named after everything that affects the result.

    Raises:
        InputError: there are no texts, there is no such start model, its tokenizer is unsuitable, the vocabulary is
            too small.
    """
    encoder = params.encoder
    start = None if isinstance(encoder, NewEncoder) else locate_model(encoder.model, encoder).resolve()
    read = files_fingerprint([pairs, texts] if texts else [pairs]), model_hash(start) if start else ""
    content = fingerprint(name, seed, params.model_dump(), read, training_code())
    folder = runtime.scratch("pretrain", content).resolve()
    if not _is_sound(folder / "corpus"):
        _prepare(folder / "corpus", params, start, pairs, texts)
    return PretrainJob(
        name=name,
        seed=seed,
        batch_size=params.batch_size,
        model=model.resolve(),
        scratch=folder,
        storage=job_storage(name, folder),
        device=training_device(),
        tensorboard=runtime.tensorboard(),
        params=params,
        start_model=start,
        prefixes=_prefixes(params, start, f"pretrain.{name}.encoder"),
        corpus=folder / "corpus",
        results=results.resolve(),
    )


def _prefixes(params: PretrainParams, start: Path | None, entry: str) -> Prefixes:
    if start is None or isinstance(params.encoder, NewEncoder):
        return Prefixes()
    return own_prefixes(start, entry) if params.encoder.prefixes is None else params.encoder.prefixes


def _is_sound(corpus: Path) -> bool:
    """Whether an unfinished run has left its corpus as it was made; a damaged one is told."""
    if corpus.exists() and any(faults(corpus)):
        print(f"warning: {corpus}: damaged; it is made again", file=sys.stderr)
        return False
    return corpus.exists()


def _prepare(corpus: Path, params: PretrainParams, start: Path | None, pairs: Path, more: Path | None) -> None:
    if isinstance(params.encoder, NewEncoder):
        texts = partial(read_texts, pairs, more, params.held_out, validation=False)
        tokenizer = train_vocabulary(texts, params.encoder.vocab_size)
    else:
        assert start
        with loading(f"model '{start}': its tokenizer"):
            tokenizer = load_tokenizer(start)
        check_words(f"model '{start}'", tokenizer)
        special_tokens(tokenizer, f"model '{start}'")
    with atomic_dir(corpus) as folder:
        write_corpus(folder, pairs, more, params.held_out, tokenizer)
