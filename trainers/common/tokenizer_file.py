"""Tokenizers on disk, without what their last use left in them."""

from pathlib import Path

from tokenizers import Tokenizer


def settle_tokenizer(folder: Path) -> None:
    """Remove padding and truncation from the ``tokenizer.json`` of a saved model, wherever in its folder it lies.

    Tokenizers keep those of their last call. A run that was resumed after its last step has not called any, and would
    write other bytes. Whoever calls a tokenizer says how to pad and cut.
    """
    for file in folder.rglob("tokenizer.json"):
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.save(str(file))
