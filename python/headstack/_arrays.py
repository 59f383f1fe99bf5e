"""Arguments as columns: one dimension, whole numbers, no copy where there need be none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import InputError
from ._numpy import np

if TYPE_CHECKING:
    import numpy.typing as npt

    Int64 = npt.NDArray[np.int64]



def int_column(name: str, values: Any, rows: int | None = None) -> Int64:
    """`values` as a column of 64-bit numbers; one number is repeated for each of `rows`.

    Raises InputError for several dimensions, another length, or values that are no whole numbers.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: no array: {error}") from error
    if array.ndim == 0 and rows is not None:
        array = np.broadcast_to(array, (rows,))
    if array.ndim != 1:
        raise InputError(f"{name}: {array.ndim} dimensions (1)")
    if rows is not None and len(array) != rows:
        raise InputError(f"{name}: {len(array)} rows (as many as the first column, {rows})")
    if array.dtype.kind not in "iub":
        if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array)):
            pass
        elif len(array) == 0:
            return np.empty(0, dtype=np.int64)
        else:
            raise InputError(f"{name}: values of type {array.dtype} (whole numbers)")
    if len(array) and (float(array.max()) >= 2.0**63 or float(array.min()) < -(2.0**63)):
        raise InputError(f"{name}: a value does not fit in 64 bits")
    return np.ascontiguousarray(array, dtype=np.int64)


KINDS = ("read", "write", "flush", "trim")


def op_column(values: Any, rows: int) -> npt.NDArray[np.uint8]:
    """Operations, as names (`read`, `write`, `flush`, `trim`; of a categorical, too) or codes (0 to 3), as codes."""
    if isinstance(values, str):
        values = np.full(rows, values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"op: no array: {error}") from error
    if array.ndim != 1 or len(array) != rows:
        raise InputError(f"op: shape {array.shape} (as many rows as the first column, {rows})")
    if array.dtype.kind in "OUST":
        names, inverse = np.unique(array.astype(str), return_inverse=True)
        wrong = [name for name in names.tolist() if name not in KINDS]
        if wrong:
            raise InputError(f"op: {wrong[0]!r} (one of {', '.join(KINDS)})")
        codes = np.array([KINDS.index(name) for name in names.tolist()], dtype=np.uint8)
        return np.ascontiguousarray(codes[inverse.reshape(-1)], dtype=np.uint8)
    column = int_column("op", array, rows)
    if len(column) and (column.min() < 0 or column.max() >= len(KINDS)):
        raise InputError(f"op: a code is outside 0 to {len(KINDS) - 1} ({', '.join(KINDS)})")
    return column.astype(np.uint8)
