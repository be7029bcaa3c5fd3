"""Data inside the page: JSON, compressed, in base64, which cannot end a script element."""

import base64
import gzip
import json
from typing import Any


def pack(values: Any) -> str:
    """Return ``values`` as base64 of compressed JSON; equal values are equal text."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 7, mtime=0)).decode()
