"""The kinds of vectors, which ``kind`` in an entry of ``embed.models`` selects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.embed import file, lexical, pipeline

KINDS: dict[str, Callable[[Path, Any, Path], tuple[int, int]]] = {
    "model": pipeline.embed,
    "tfidf": lexical.embed,
    "bm25": lexical.embed,
    "file": file.embed,
}
"""Each function takes the folder of pairs, an entry of its kind and the folder to write the vector store to. It
returns the number of vectors and how many of them were newly computed."""
