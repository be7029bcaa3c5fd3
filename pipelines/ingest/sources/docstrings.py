"""Installed Python packages: pairs the first paragraph of a function's docstring with the function's source.

Functions are selected by CodeSearchNet's rule (Husain et al. 2019, section 2): at least three words of
documentation and three lines of code, no tests and no special methods.
"""

import ast
import gc
import heapq
import importlib.util
import inspect
import re
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from pipelines.ingest.sources.base import Part, Row, Source, faulty

_MIN_WORDS = 3
_MIN_LINES = 3
_TEST_FOLDERS = {"test", "tests", "testing"}

PackageName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]


class DocstringsSource(Source):
    """Installed Python packages: a function's docstring (its first paragraph) is the query, its source the document."""

    kind: Literal["docstrings"] = "docstrings"
    packages: list[PackageName] = Field(min_length=1)
    """Import names of the packages."""
    domain: str | None = Field(default=None, min_length=1)
    """One domain for the pairs of all packages; null makes each package a domain."""
    max_characters: int | None = Field(default=None, gt=0)
    """Cuts each function's source after this many characters; null keeps it whole."""
    limit: int | None = Field(default=None, gt=0)
    """Maximum number of pairs per package, selected by hash; null takes all."""

    @property
    def label(self) -> str:
        return "docstrings"

    def parts(self) -> list[Part]:
        for package in self.packages:
            _locate(package)
        return [Part(package) for package in self.packages]

    def read_for(self, part: Part) -> list[str]:
        return [str(file) for _, file in _modules(part.name)]

    def rows(self, part: Part) -> Iterator[Row]:
        with _no_garbage_collection():
            rows = [row for file in _modules(part.name) for row in _functions(file)]
        good = [
            row._replace(domain=self.domain or part.name, document=str(row.document)[: self.max_characters])
            for row in rows
            if row.fault is None
        ]
        if not good:
            raise InputError(f"package '{part.name}': has no functions with docstrings; remove it from 'packages'")
        if self.limit is not None:
            # Select by content, so that the order of files and functions does not matter.
            good = heapq.nsmallest(self.limit, good, key=lambda row: content_id(str(row.query), str(row.document)))
        yield from good
        yield from (row for row in rows if row.fault is not None)


def _locate(package: str) -> list[Path]:
    """Find the package's folders, or its only file, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise InputError(f"package '{package}': not installed; install it or remove it from 'packages'")
    if spec.submodule_search_locations:
        return [Path(folder) for folder in spec.submodule_search_locations]
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise InputError(f"package '{package}': has no Python source; remove it from 'packages'")
    return [Path(spec.origin)]


def _modules(package: str) -> Iterator[tuple[str, Path]]:
    """Yield each module's name, relative to where packages are installed, and its path."""
    for root in _locate(package):
        files = root.rglob("*.py") if root.is_dir() else [root]
        for name, file in sorted((file.relative_to(root.parent).as_posix(), file) for file in files):
            if not _TEST_FOLDERS.intersection(name.split("/")):
                yield name, file


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    # A syntax tree's many nodes trigger full garbage collections, which would double the time.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _functions(module: tuple[str, Path]) -> Iterator[Row]:
    name, file = module
    try:
        with tokenize.open(file) as handle:
            text = handle.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        yield faulty(name, getattr(error, "lineno", None) or 1, str(error), "not valid Python")
        return
    except (RecursionError, MemoryError):
        yield faulty(name, 1, "is nested too deeply", "not valid Python")
        return
    lines = text.split("\n")
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_wanted(node.name):
            query, code = _summary(node), _code(node, lines)
            if len(query.split()) >= _MIN_WORDS and sum(map(bool, map(str.strip, code))) >= _MIN_LINES:
                yield Row(name, node.lineno, query, "\n".join(code), None)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements of a file; ``ast.walk`` also visits every expression and takes five times as long."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        blocks = ("body", "orelse", "finalbody", "handlers", "cases")
        waiting += reversed([child for block in blocks for child in getattr(node, block, ())])


def _is_wanted(function: str) -> bool:
    return "test" not in function.lower() and not (function.startswith("__") and function.endswith("__"))


def _summary(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The first paragraph of the docstring, on one line; empty if there is none."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(ast.get_docstring(node, clean=False) or ""))
    return " ".join(paragraphs[0].split())


def _code(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> list[str]:
    """The lines of a documented function, without its docstring and outer indentation."""
    docstring = node.body[0]
    kept = [*lines[node.lineno - 1 : docstring.lineno - 1], *lines[docstring.end_lineno : node.end_lineno]]
    margin = " " * node.col_offset
    return [line.removeprefix(margin) for line in kept]
