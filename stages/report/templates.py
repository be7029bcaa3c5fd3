"""The Jinja templates of the page."""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

_LONG_WORD = re.compile(r"\S{20,}")
_JOINT = re.compile(r"(?<=[^\W_][^\w\s]|[^\W_]_|[^\w\s]{2})(?=[^\W_])")


def breakable(text: str) -> Markup:
    """Allow a line break inside of long words wherever something begins after a sign, as in ``some_long.name``."""
    jointed = _LONG_WORD.sub(lambda word: _JOINT.sub("\0", word[0]), text.replace("\0", ""))
    return Markup(str(escape(jointed)).replace("\0", "<wbr>"))


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["breakable"] = breakable
