"""Wrong shapes, types and keywords are exceptions of ours or of Python's, never panics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import headstack as hs

RIG = hs.Rig("atlas-10k")

#: What a column may be by mistake, and what it may rightly be.
TYPES: Any = st.sampled_from([np.int64, np.uint64, np.int8, np.float32, np.bool_, np.complex128, "U2", "M8[ns]", object])
COLUMNS: Any = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-5, 10**7), st.floats(), st.none()), max_size=4),
    st.lists(st.integers(0, 10**7), min_size=3, max_size=3),
    arrays.arrays(TYPES, st.sampled_from([(), (0,), (3,), (2, 2)])),
)

#: Errors that a caller may meet. InputError is a ValueError.
ALLOWED = (hs.InputError, TypeError, OverflowError)


@given(time=COLUMNS, lbn=COLUMNS, sectors=COLUMNS, op=COLUMNS, device=COLUMNS)
def test_wrong_columns_are_exceptions(time: Any, lbn: Any, sectors: Any, op: Any, device: Any) -> None:
    try:
        load = hs.Requests(time, lbn, sectors, op, device=device, wrap=True, all_to=0)
        RIG.run(load)
    except ALLOWED as error:
        assert str(error)


VALUES: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=2)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=6), inner, max_size=2)),
    max_leaves=4,
)
KEYS = st.sampled_from(["drive", "host", "title", "drive.queue_depth", "bus", "array", "host.queue.order", "x", ""])


@given(key=KEYS, value=VALUES)
def test_wrong_keys_of_rigs_are_exceptions(key: str, value: Any) -> None:
    calls: tuple[Callable[[], hs.Rig], ...] = (
        lambda: RIG.set(key, value),
        lambda: hs.Rig("atlas-10k", **{key: value}),
    )
    for call in calls:
        try:
            call()
        except ALLOWED as error:
            assert str(error)


@given(value=VALUES, key=st.sampled_from(["requests", "blocks", "stream", "burst", "process", "x"]))
def test_wrong_keys_of_generators_are_exceptions(key: str, value: Any) -> None:
    try:
        load = hs.Generators(**{key: value})
        RIG.simulation(load).run(until=0.01)
    except ALLOWED as error:
        assert str(error)


@given(
    option=st.sampled_from(["rw", "bs", "size", "iodepth", "number_ios", "rate", "x"]),
    value=st.one_of(st.integers(), st.floats(), st.text(max_size=6), st.booleans(), st.none()),
)
def test_wrong_options_of_fio_are_exceptions(option: str, value: Any) -> None:
    try:
        load = hs.Fio(**{"size": "1m", option: value})
        RIG.simulation(load).run(until=0.01)
    except ALLOWED as error:
        assert str(error)


@given(text=st.text(max_size=40))
def test_any_text_is_a_load_or_an_exception(text: str) -> None:
    for make in (hs.Fio.from_text, hs.Generators.from_toml, hs.Rig.from_toml, hs.Drive.from_toml):
        try:
            make(text)
        except ALLOWED as error:
            assert str(error)


@given(seed=VALUES, keep=VALUES, until=VALUES, events=VALUES)
def test_wrong_arguments_of_runs_are_exceptions(seed: Any, keep: Any, until: Any, events: Any) -> None:
    load = hs.Requests([0], [0], 8)
    calls: tuple[Callable[[], object], ...] = (
        lambda: RIG.run(load, seed=seed),
        lambda: RIG.run(load, keep=keep),
        lambda: RIG.simulation(load).run(until=until),
        lambda: RIG.simulation(load).run(interval_s=until),
        lambda: RIG.simulation(load).step(events),
        lambda: RIG.run(seed),
        lambda: hs.Drive("atlas-10k").locate(until),
    )
    for call in calls:
        try:
            call()
        except ALLOWED as error:
            assert str(error)
