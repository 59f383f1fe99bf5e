"""Loads written in Python."""

from __future__ import annotations

import random
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headstack as hs

Steps = Generator["hs.Request | hs.Sleep | None", hs.Completion, None]


def one_by_one(context: hs.LoadContext) -> Steps:
    """Random reads, each after the completion of the one before."""
    numbers = random.Random(context.seed + context.source)
    for _ in range(100):
        request = hs.Request(numbers.randrange(context.sectors - 8), 8)
        yield request
        done = yield None
        assert done.request is request
        assert done.completed_ns == context.now_ns == done.issued_ns + done.response_ns


def test_generator_that_waits_keeps_one_request_outstanding(rig: hs.Rig) -> None:
    run = rig.run(hs.PythonLoad(one_by_one), seed=3)
    table = run.requests
    assert len(table) == 100
    assert np.array_equal(table.submitted_ns[1:], table.completed_ns[:-1])
    assert run.to_json() == rig.run(hs.PythonLoad(one_by_one), seed=3).to_json()


def test_requests_with_times_equal_those_in_columns(rig: hs.Rig) -> None:
    times = [i * 3_000_000 for i in range(200)]
    blocks = [(i * 7919) % 1_000_000 for i in range(200)]
    ops = ["read" if i % 3 else "write" for i in range(200)]

    def issued(context: hs.LoadContext) -> Iterator[hs.Request]:
        return (hs.Request(lbn, 8, op, time_ns=time) for time, lbn, op in zip(times, blocks, ops))

    own = rig.run(hs.PythonLoad(issued)).requests
    other = rig.run(hs.Requests(times, blocks, 8, ops)).requests
    for name in ("lbn", "op", "submitted_ns", "completed_ns", "seek_ns"):
        assert np.array_equal(own[name], other[name]), name


def test_each_source_reports_as_a_job(rig: hs.Rig) -> None:
    def sleeper(context: hs.LoadContext) -> Steps:
        yield hs.Sleep(0.5)
        assert context.now_ns == 500_000_000
        yield hs.Request(0, 8, "write")

    run = rig.run(hs.PythonLoad(one_by_one, one_by_one, sleeper, name="mine"))
    assert [job["name"] for job in run.jobs] == ["one_by_one", "one_by_one", "sleeper"]
    assert run.response.count == 201 and run.writes.count == 1
    assert {int(source) for source in run.requests.source} == {0, 1, 2}
    assert "mine" in repr(run)


def test_exception_in_a_load_ends_the_run_with_its_line(rig: hs.Rig) -> None:
    def failing(context: hs.LoadContext) -> Iterator[hs.Request]:
        yield hs.Request(0, 8)
        raise ZeroDivisionError("of the test")

    with pytest.raises(ZeroDivisionError, match="of the test") as raised:
        rig.run(hs.PythonLoad(failing, one_by_one))
    assert 'raise ZeroDivisionError("of the test")' in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: 7, "a load yielded int"),
        (lambda: hs.Request(10**12, 8), "8 sectors at LBN 1000000000000 are outside"),
        (lambda: hs.Request(0, 8, volume=3), "volume: 3 is outside 0 to 0"),
        (lambda: None, "has no request outstanding"),
    ],
)
def test_wrong_step_is_an_exception_at_its_yield(rig: hs.Rig, wrong: Any, message: str) -> None:
    def source(context: hs.LoadContext) -> Iterator[Any]:
        yield wrong()  # the wrong step

    with pytest.raises(hs.InputError, match=message) as raised:
        rig.run(hs.PythonLoad(source))
    assert "# the wrong step" in "".join(traceback.format_exception(raised.value))


def test_source_that_catches_the_error_does_not_continue(rig: hs.Rig) -> None:
    def stubborn(context: hs.LoadContext) -> Iterator[Any]:
        while True:
            try:
                yield 7
            except hs.InputError:
                pass

    with pytest.raises(hs.InputError, match="yielded int"):
        rig.run(hs.PythonLoad(stubborn))


def test_wrong_sources_are_exceptions(rig: hs.Rig) -> None:
    for sources in ((), (3,), ([hs.Request(0, 8)],)):
        with pytest.raises(hs.InputError, match="sources: .*a function that returns"):
            hs.PythonLoad(*sources)
    with pytest.raises(hs.InputError, match=r"source <lambda>: returned int \(an iterable of requests\)"):
        rig.run(hs.PythonLoad(lambda context: 3))  # type: ignore[arg-type,return-value]
    with pytest.raises(hs.InputError, match="only a generator can"):
        rig.run(hs.PythonLoad(lambda context: [hs.Request(0, 8), None]))
    with pytest.raises(hs.InputError, match="is written in Python"):
        hs.tune(hs.Rig("workstation"), hs.PythonLoad(one_by_one))


def test_unknown_keyword_names_the_nearest(rig: hs.Rig) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: hs.Request(0, 8, volum=0), "'volume'"),  # type: ignore[call-arg]
        (lambda: hs.PythonLoad(one_by_one, nmae="mine"), "'name'"),  # type: ignore[call-arg]
        (lambda: rig.with_layer(hs.Layer(), drve=0), "'drive'"),  # type: ignore[call-arg]
        (lambda: rig.run(hs.PythonLoad(one_by_one), sede=1), "'seed'"),  # type: ignore[call-arg]
        (lambda: hs.Sweep(rigs="atlas-10k", loads="job.fio", seed=1), "'seeds'"),  # type: ignore[call-arg]
        (lambda: hs.tune(rig, hs.PythonLoad(one_by_one), gaol="iops"), "'goal'"),  # type: ignore[call-arg]
    ]
    for call, near in calls:
        with pytest.raises(TypeError, match=f"unexpected keyword argument .*Did you mean {near}"):
            call()


def test_load_without_an_end_is_stopped_at_a_time_and_by_ctrl_c(rig: hs.Rig) -> None:
    def endless(context: hs.LoadContext) -> Iterator[hs.Request]:
        while True:
            yield hs.Request(0, 8)

    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.warns(hs.StoppedWarning):
        run = rig.run(hs.PythonLoad(endless), keep="summary")
    assert run.partial is not None and run.partial["reason"] == "SIGINT"

    def waiting(context: hs.LoadContext) -> Steps:
        while True:
            yield hs.Request(0, 8)
            yield None

    simulation = rig.simulation(hs.PythonLoad(waiting))
    assert simulation.run(until=0.5)
    assert simulation.finish().response.count > 10


NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.none(), st.text(max_size=3))


@given(lbn=NUMBERS, sectors=NUMBERS, op=st.one_of(st.sampled_from(["read", "write", "flush"]), NUMBERS), time=NUMBERS)
def test_any_request_is_served_or_an_exception(lbn: Any, sectors: Any, op: Any, time: Any) -> None:
    def source(context: hs.LoadContext) -> Iterator[Any]:
        yield hs.Request(lbn, sectors, op, time_ns=time)
        yield hs.Sleep(sectors)

    try:
        hs.Rig("atlas-10k").run(hs.PythonLoad(source))
    except (hs.InputError, TypeError, OverflowError) as error:
        assert str(error)


def test_outstanding_requests_are_released_while_the_program_makes_objects() -> None:
    """A load is stopped with some hundred thousand requests outstanding; each release that nested in another took stack."""

    def many(context: hs.LoadContext) -> Iterator[hs.Request]:
        for _ in range(300_000):
            yield hs.Request(0, 8)

    simulation = hs.Rig("atlas-10k").simulation(hs.PythonLoad(many))
    simulation.step(1)
    done = threading.Event()

    def make() -> None:
        while not done.is_set():
            [hs.Request(0, 8) for _ in range(100)]

    # A small stack shows nested calls soon.
    before = threading.stack_size(1 << 18)
    try:
        thread = threading.Thread(target=make)
        thread.start()
    finally:
        threading.stack_size(before)
    assert simulation.finish().response.count < 300_000
    done.set()
    thread.join()
