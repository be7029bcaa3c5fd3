"""Functions of installed packages become pairs by CodeSearchNet's rule."""

import sys
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from pipelines.ingest.sources.base import Part, Row
from pipelines.ingest.sources.docstrings import DocstringsSource
from tests.ingest.running import ingest

MODULE = '''
raise RuntimeError("a source must not be imported")

def plain(x):
    """Return the
    sum of x.

    More about it.
    """
    total = sum(x)
    return total

class Thing:
    @decorated
    async def method(self):
        """Wait for a thing."""
        text = """
not indented
"""
        return text

    def __len__(self):
        """Count all the things."""
        size = 0
        return size

if True:
    def inside(a):
        r"""Match \\d+ in text."""
        def nested(b):
            """Do nested work here."""
            b += 1
            return b
        return nested(a)

def undocumented(x):
    x += 1
    return x

def terse(x):
    """Two words."""
    x += 1
    return x

def short(x):
    """Too short a function."""
    return x

def test_plain():
    """Check that plain works."""
    x = 1
    assert x
'''


@pytest.fixture
def package(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = workspace / "installed" / "sample_package"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "core.py").write_text(MODULE)
    (folder / "tests" / "helper.py").write_text(MODULE.replace("plain", "checker"))
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def functions(limit: int | None = None) -> dict[str, Row]:
    source = DocstringsSource(kind="docstrings", packages=["sample_package"], limit=limit)
    return {str(row.query): row for row in source.rows(Part("sample_package"))}


def test_documented_functions_of_some_length_are_read_without_importing(package: Path) -> None:
    assert set(functions()) == {
        "Return the sum of x.",
        "Wait for a thing.",
        r"Match \d+ in text.",
        "Do nested work here.",
    }
    assert "sample_package" not in sys.modules


def test_the_document_is_the_source_without_docstring_decorators_and_outer_indentation(package: Path) -> None:
    found = functions()
    assert found["Return the sum of x."].document == "def plain(x):\n    total = sum(x)\n    return total"
    assert found["Wait for a thing."].document == (
        'async def method(self):\n    text = """\nnot indented\n"""\n    return text'
    )


def test_rows_record_file_and_line(package: Path) -> None:
    row = functions()["Return the sum of x."]
    assert (row.source, row.number) == ("sample_package/core.py", 4)


def test_a_limit_selects_the_same_functions_wherever_they_are(package: Path) -> None:
    chosen = {row.document for row in functions(limit=2).values()}
    assert len(chosen) == 2
    (package / "a_first.py").write_text((package / "core.py").read_text())
    (package / "core.py").unlink()
    assert {row.document for row in functions(limit=2).values()} == chosen


def test_a_module_that_does_not_parse_is_a_reject(package: Path) -> None:
    (package / "old.py").write_text("print 'hello'\n")
    outcome = ingest({"kind": "docstrings", "packages": ["sample_package"], "limit": 3})
    assert outcome.reasons == [("old.py", 1, "not valid Python")]
    assert {pair["domain"] for pair in outcome.pairs} == {"sample_package"}
    assert len(outcome.pairs) == 3


@pytest.mark.parametrize("text", ["if x: pass\n" + "elif x: pass\n" * 3000, "a" + ".b" * 10_000, "-" * 60_000 + "1"])
def test_a_module_that_is_nested_too_deeply_is_a_reject_or_read(package: Path, text: str) -> None:
    (package / "deep.py").write_text(text)
    outcome = ingest({"kind": "docstrings", "packages": ["sample_package"], "limit": 3})
    assert set(outcome.reasons) <= {("deep.py", 1, "not valid Python")}
    assert len(outcome.pairs) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_package", "package 'no_such_package': not installed"),
        ("sys", "package 'sys': has no Python source"),
        ("bare_package", "package 'bare_package': has no functions with docstrings"),
    ],
)
def test_a_package_without_functions_is_refused(package: Path, name: str, message: str) -> None:
    (package.parent / "bare_package").mkdir()
    (package.parent / "bare_package" / "__init__.py").write_text("x = 1\n")
    with pytest.raises(InputError, match=message):
        ingest({"kind": "docstrings", "packages": [name]})


def test_long_functions_can_be_cut(package: Path) -> None:
    whole, cut = (
        DocstringsSource(kind="docstrings", packages=["sample_package"], max_characters=most) for most in (None, 20)
    )
    texts = [[str(row.document) for row in each.rows(Part("sample_package")) if not row.fault] for each in (whole, cut)]
    assert texts[1] == [text[:20] for text in texts[0]] != texts[0]


def test_packages_can_share_a_domain(package: Path) -> None:
    source = DocstringsSource(kind="docstrings", packages=["sample_package"], domain="python")
    assert {row.domain for row in source.rows(Part("sample_package")) if row.fault is None} == {"python"}
    own = DocstringsSource(kind="docstrings", packages=["sample_package"])
    assert {row.domain for row in own.rows(Part("sample_package")) if row.fault is None} == {"sample_package"}
