"""Tokenizers on disk, without what their last use left in them."""

from pathlib import Path

from tokenizers import Tokenizer


def settle_tokenizer(folder: Path, max_length: int | None = None) -> None:
    """Let the ``tokenizer.json`` of a saved model, wherever in its folder it lies, cut at ``max_length``, and not pad.

    Tokenizers keep padding and truncation of their last call. A run that was resumed after its last step has not called
    any, and would write other bytes. Whoever calls a tokenizer says how to pad and cut, but for static models, which
    would read whole texts elsewhere.
    """
    for file in folder.rglob("tokenizer.json"):
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        if max_length is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(max_length)
        tokenizer.save(str(file))
