"""NumPy, imported when it is first used: it takes longer to import than the rest of the package, and a run that keeps no rows needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class LazyNumpy:
        """Stands for the module."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = LazyNumpy()

__all__ = ["np"]
