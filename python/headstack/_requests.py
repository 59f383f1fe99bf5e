"""The requests of a run in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import InputError
from ._numpy import np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas
    import polars
    import pyarrow

__all__ = ["RequestTable"]

#: Columns of codes, and the names behind the codes.
CODED = {"op": _native.operations(), "cache": _native.cache_uses(), "outcome": _native.outcomes()}

#: Types of columns that the recorder leaves out while all their values are zero.
SPARSE = {
    "urgent": "bool",
    "limit": "uint8",
    "source": "uint32",
    "volume": "uint32",
    "device": "uint32",
    "outcome": "uint8",
}

#: The column after which `response_ns` stands, which is computed.
BEFORE_RESPONSE = "completed_ns"


class RequestTable:
    """A row for each completed request, in the order of completion, as NumPy columns that the simulator filled: no copy is made.

    Columns: `lbn`, `sectors`, `op`, `urgent` (the class of the request), `limit` (the number of its command duration limit),
    `source` (job or process), `volume`, `device`, `outcome`, `counted` (false if it completed while its job warmed up, so that the figures
    of the results leave it out), `submitted_ns`, `completed_ns`, `response_ns`, the parts of the response time `queued_ns`,
    `overhead_ns`, `seek_ns`, `rotational_latency_ns`, `retries_ns`, `media_ns`, `bus_ns`, `cache_ns`, then `cache`, `from_cylinder`,
    `to_cylinder` (-1 without an access). `op`, `cache` and `outcome` are codes; `names("op")` has their names. Also `started_ns`
    (submitted and queued), which the frames lack. `response_ns` and `started_ns` are computed.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        """Wraps the recorder's columns."""
        rows = len(columns["lbn"])
        self._columns: dict[str, npt.NDArray[Any]] = {}
        for name, values in columns.items():
            if values is None:
                values = np.ones(rows, dtype="bool") if name == "counted" else np.zeros(rows, dtype=SPARSE.get(name, "int64"))
            self._columns[name] = values
            if name == BEFORE_RESPONSE:
                self._columns["response_ns"] = values - self._columns["submitted_ns"]

    def __len__(self) -> int:
        return len(self._columns["lbn"])

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name == "started_ns":
            started: npt.NDArray[Any] = self._columns["submitted_ns"] + self._columns["queued_ns"]
            return started
        try:
            return self._columns[name]
        except KeyError:
            raise InputError(f"requests: no column {name!r} (one of {', '.join(self.columns)}, started_ns)") from None

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except InputError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.columns, "started_ns"]

    @staticmethod
    def names(column: str) -> list[str]:
        """Names behind the codes of `op`, `cache` or `outcome`."""
        if column not in CODED:
            raise InputError(f"column: {column!r} has no codes (one of {', '.join(CODED)})")
        return list(CODED[column])

    def to_dict(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name, not copied."""
        return dict(self._columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame whose columns share the memory; `op`, `cache` and `outcome` are categoricals."""
        import pandas

        data: dict[str, Any] = dict(self._columns)
        for name, names in CODED.items():
            codes = data[name].view(np.int8)
            data[name] = pandas.Categorical.from_codes(codes, dtype=pandas.CategoricalDtype(names), validate=False)
        return pandas.DataFrame(data, copy=False)

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow Table whose columns share the memory; `op`, `cache` and `outcome` are dictionaries."""
        import pyarrow

        arrays = []
        for name, values in self._columns.items():
            if name in CODED:
                codes = pyarrow.array(values.view(np.int8))
                arrays.append(pyarrow.DictionaryArray.from_arrays(codes, CODED[name]))
            else:
                arrays.append(pyarrow.array(values))
        return pyarrow.Table.from_arrays(arrays, names=self.columns)

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame made of the Arrow table."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        from ._html import ends, grid, page

        rows, left = ends(len(self))
        cells = ([CODED[name][values[row]] if name in CODED else values[row].item() for name, values in self._columns.items()] for row in rows)
        title = f"{len(self):,} requests" + (f", of which {left:,} are left out" if left else "")
        return page(title, grid(self.columns, cells))

    def __reduce__(self) -> tuple[Any, ...]:
        computed = ("response_ns",)
        return RequestTable, ({name: values for name, values in self._columns.items() if name not in computed},)

    def __repr__(self) -> str:
        return f"<RequestTable: {len(self)} requests, {len(self._columns)} columns>"
