"""Where problems that are new are tried; not built yet."""

from __future__ import annotations

from typing import Any


class Workshop:
    """Tries nothing yet."""

    def begin(self, *_what: Any) -> None:
        """Lets everything pass."""

    def close(self) -> None:
        """Ends nothing."""
