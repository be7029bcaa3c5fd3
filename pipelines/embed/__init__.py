"""Embedding: encodes every unique text of a domain once, as one float16 vector.

Each kind of vectors has a module with a function ``embed``.
"""

from pathlib import Path

from pipelines.embed.params import AnyVectors, Bm25Params, EncoderParams, FileParams, TfidfParams


def embed(pairs: Path, params: AnyVectors, output: Path) -> tuple[int, int]:
    """Write the vectors of an entry of ``embed.models`` to ``output``.

    Return the number of vectors, and how many of them were newly computed.
    """
    # Each kind is imported when it is asked for: Beam and PyTorch take longer to import than words take to count.
    match params:
        case EncoderParams():
            from pipelines.embed import pipeline

            return pipeline.embed(pairs, params, output)
        case FileParams():
            from pipelines.embed import file

            return file.embed(pairs, params, output)
        case TfidfParams() | Bm25Params():
            from pipelines.embed import lexical

            return lexical.embed(pairs, params, output)
