"""The kinds of vectors; ``kind`` in an entry of ``embed.models`` chooses among them."""

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
"""Each takes the folder of pairs, an entry of its kind and a folder to write the vector store into, and returns
the number of vectors and how many of them were made now."""
