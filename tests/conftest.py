"""Numba keys its cache by the file of a kernel, not by what the kernel calls from other files.

So that no test ever runs a stale kernel, the cache of the tests is keyed by all of their sources.
"""

import hashlib
import os
import tempfile
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[1] / "src" / "dowise").rglob("*.py"))
DIGEST = hashlib.sha256(
    b"".join(path.read_bytes() for path in SOURCES if "njit" in path.read_text("utf-8"))
).hexdigest()
os.environ.setdefault("NUMBA_CACHE_DIR", f"{tempfile.gettempdir()}/dowise-kernels-{DIGEST[:16]}")
