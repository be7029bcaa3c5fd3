"""The kinds of vectors, which ``kind`` in an entry of ``embed.models`` selects."""

from pathlib import Path

from pipelines.embed.params import Bm25Params, EncoderParams, FileParams, TfidfParams


def embed(pairs: Path, made: EncoderParams | TfidfParams | Bm25Params | FileParams, output: Path) -> tuple[int, int]:
    """Write the vectors of an entry of ``embed.models`` to ``output``.

    Return the number of vectors, and how many of them were newly computed.
    """
    # Each kind is imported when it is asked for: Beam and PyTorch take longer to import than words take to count.
    match made:
        case EncoderParams():
            from pipelines.embed import pipeline

            return pipeline.embed(pairs, made, output)
        case FileParams():
            from pipelines.embed import file

            return file.embed(pairs, made, output)
        case TfidfParams() | Bm25Params():
            from pipelines.embed import lexical

            return lexical.embed(pairs, made, output)
