"""Results that were pickled: the same figures without the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._numpy import np

if TYPE_CHECKING:
    import numpy.typing as npt

    from . import _native

__all__ = ["StoredResults"]

KINDS = ("all", "read", "write", "flush")

#: What is copied of results as it is.
COPIED = ("seed", "iops", "bandwidth_mb_s", "simulated_s", "counted_s")
CALLED = ("to_json", "titles", "remarks", "notes", "setup", "rates", "early_stop", "parts_ms")


class StoredResults:
    """What `Results` needs of a run, in values that can be pickled."""

    seed: int
    iops: float
    bandwidth_mb_s: float
    simulated_s: float
    counted_s: float

    def __init__(self, native: _native.Results, requests: dict[str, Any] | None) -> None:
        """Copies results; `requests` are the columns of their requests, if they were kept."""
        for name in COPIED:
            setattr(self, name, getattr(native, name))
        self._called: dict[str, Any] = {name: getattr(native, name)() for name in CALLED}
        self._counts = {kind: native.count(kind) for kind in KINDS}
        self._moments = {kind: native.moments_ms(kind) for kind in KINDS}
        self._steps = {kind: native.steps(kind) for kind in KINDS}
        self._requests = requests

    def to_json(self) -> str:
        return str(self._called["to_json"])

    def titles(self) -> tuple[str, str, str]:
        rig, load, kind = self._called["titles"]
        return rig, load, kind

    def remarks(self) -> list[str]:
        return list(self._called["remarks"])

    def notes(self) -> list[tuple[str, str]]:
        return list(self._called["notes"])

    def setup(self) -> str | None:
        found: str | None = self._called["setup"]
        return found

    def rates(self) -> tuple[float, float, float]:
        reads, writes, flushes = self._called["rates"]
        return reads, writes, flushes

    def early_stop(self) -> tuple[str, float | None, int] | None:
        found: tuple[str, float | None, int] | None = self._called["early_stop"]
        return found

    def parts_ms(self) -> list[tuple[str, float]]:
        return list(self._called["parts_ms"])

    def count(self, kind: str) -> tuple[int, int]:
        return self._counts[kind]

    def moments_ms(self, kind: str) -> list[float]:
        return list(self._moments[kind])

    def steps(self, kind: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return self._steps[kind]

    def quantile_ms(self, kind: str, share: float) -> float:
        return float(self._quantiles_ms(kind, np.array([share]))[0])

    def distribution(self, kind: str, steps: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        if self._counts[kind][0] == 0:
            return np.empty(0), np.empty(0)
        shares = np.arange(1, steps + 1) / steps
        return shares, self._quantiles_ms(kind, shares)

    def _quantiles_ms(self, kind: str, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """As the histogram of the extension: the largest time of the counts in which the share ends, between minimum and maximum."""
        times, counts = self._steps[kind]
        if len(times) == 0:
            return np.zeros(len(shares))
        summed = np.cumsum(counts)
        ranks = np.maximum(np.ceil(np.clip(shares, 0.0, 1.0) * summed[-1]).astype(np.int64), 1)
        found = times[np.searchsorted(summed, ranks)] / 1e6
        _, _, least, most = self._moments[kind]
        # The share 0 ends before the first time.
        return np.where(shares > 0, np.clip(found, least, most), least)

    def take_requests(self) -> dict[str, Any] | None:
        return self._requests
