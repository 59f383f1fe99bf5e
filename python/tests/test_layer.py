"""Layers written in Python."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headstack as hs


class Link(hs.Layer):
    """A network link: each request arrives a millisecond later."""

    def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
        calls.send(request, delay_ns=1_000_000)


class Cache(hs.Layer):
    """Answers each block that was read before at once."""

    def start(self) -> None:
        self.blocks: set[int] = set()

    def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
        if request.op == "read" and request.lbn in self.blocks:
            calls.answer(request, delay_ns=20_000)
        else:
            calls.send(request)

    def complete(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
        assert calls.outcome(request) == "done"
        self.blocks.add(request.lbn)
        calls.answer(request)


def split_adds_up(table: hs.RequestTable) -> bool:
    parts = [table[name] for name in table.columns if name.endswith("_ns") and name not in ("submitted_ns", "completed_ns", "response_ns")]
    return bool(np.array_equal(np.sum(parts, axis=0), table["response_ns"]))


def test_layer_that_passes_all_on_changes_nothing(rig: hs.Rig, load: hs.Fio) -> None:
    plain = rig.run(load, seed=4)
    for place in ({"volume": 0}, {"drive": 0}):
        layered = rig.with_layer(hs.Layer(), **place).run(load, seed=4)
        assert layered.to_dict()["headstack"]["response_ms"] == plain.to_dict()["headstack"]["response_ms"]


def test_delay_of_a_layer_is_part_of_the_response(rig: hs.Rig) -> None:
    load = hs.Fio(rw="randread", bs="4k", size="1g", number_ios=50)
    plain, linked = rig.run(load).requests, rig.with_layer(Link()).run(load).requests
    assert np.all(linked.queued_ns >= 1_000_000) and not np.any(plain.queued_ns >= 1_000_000)
    assert split_adds_up(linked)


def test_cache_in_a_layer_answers_without_the_disk(rig: hs.Rig) -> None:
    load = hs.Requests(np.arange(40) * 50_000_000, np.arange(40) % 10 * 80_000, 8)
    cached = rig.with_layer(Cache())
    for _ in range(2):  # start() empties it before each run
        run = cached.run(load)
        assert sorted(run.requests.response_ns)[:30] == [20_000] * 30
        assert run.devices[0]["commands"] == 10
        assert split_adds_up(run.requests)


def test_layer_can_split_change_and_issue_requests(rig: hs.Rig) -> None:
    class Mirror(hs.Layer):
        """Writes everything twice, and reads ahead once."""

        def start(self) -> None:
            self.own: list[hs.LayerRequest] = []

        def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            calls.send(request)
            if request.op == "write":
                calls.send(request, lbn=request.lbn + calls.sectors // 2)
            else:
                self.own.append(calls.issue(request.lbn + request.sectors, 64))

        def complete(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            assert request.is_own == (request in self.own)
            calls.answer(request)

    load = hs.Requests([0, 10**9], [800, 90_000], 8, ["write", "read"])
    run = rig.with_layer(Mirror()).run(load)
    assert run.response.count == 2
    assert run.devices[0]["commands"] == 4
    assert split_adds_up(run.requests)


def test_timeout_comes_at_its_time_and_sends_what_was_held(rig: hs.Rig) -> None:
    class Batch(hs.Layer):
        """Sends what has arrived every 10 ms."""

        def start(self) -> None:
            self.held: list[hs.LayerRequest] = []

        def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            if not self.held:
                calls.call_at(calls.now_ns + 10_000_000)
            self.held.append(request)

        def timeout(self, calls: hs.LayerCalls) -> None:
            assert calls.now_ns == self.held[0].arrived_ns + 10_000_000
            for request in self.held:
                calls.send(request)
            self.held = []

    run = rig.with_layer(Batch()).run(hs.Requests([0, 5_000_000, 90_000_000], [0, 8, 16], 8))
    assert sorted(run.requests.queued_ns)[0] >= 5_000_000
    assert run.response.count == 3


def test_exception_in_a_layer_ends_the_run_with_its_line(rig: hs.Rig, load: hs.Fio) -> None:
    class Failing(hs.Layer):
        def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            raise ZeroDivisionError("of the test")

    with pytest.raises(ZeroDivisionError, match="of the test") as raised:
        rig.with_layer(Failing()).run(load)
    assert 'raise ZeroDivisionError("of the test")' in "".join(traceback.format_exception(raised.value))

    class NoStart(hs.Layer):
        def start(self) -> None:
            raise KeyError("start")

    with pytest.raises(KeyError, match="start"):
        rig.with_layer(NoStart()).run(load)


def test_request_that_is_never_answered_is_an_error(rig: hs.Rig, load: hs.Fio) -> None:
    class Holding(hs.Layer):
        def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            pass

    with pytest.raises(hs.InputError, match=r"Holding: <LayerRequest: read of 8 sectors .* is not answered"):
        rig.with_layer(Holding()).run(load)
    simulation = rig.with_layer(Holding()).simulation(load)
    with pytest.raises(hs.InputError, match="is not answered"):
        simulation.step(1000)


def test_wrong_calls_of_a_layer_are_exceptions(rig: hs.Rig) -> None:
    wrongs: list[tuple[Any, str]] = [
        (lambda calls, request: calls.send(request, lbn=10**12), "outside the"),
        (lambda calls, request: calls.send(request, lbn=-1), "lbn: -1 is below 0"),
        (lambda calls, request: calls.send(request, sectors=0), "sectors: 0 is outside 1"),
        (lambda calls, request: calls.send(request, op="trim"), "op: `trim`"),
        (lambda calls, request: calls.send(request, delay_ns=-1), "delay_ns: -1"),
        (lambda calls, request: (calls.send(request), calls.answer(request)), "has not completed"),
        (lambda calls, request: (calls.answer(request), calls.answer(request)), "is answered already"),
        (lambda calls, request: calls.call_at(-1), "time_ns: -1"),
    ]
    for wrong, message in wrongs:

        class Wrong(hs.Layer):
            def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
                wrong(calls, request)

        with pytest.raises(hs.InputError, match=message):
            rig.with_layer(Wrong()).run(hs.Requests([0], [0], 8))


def test_calls_outside_of_the_methods_are_exceptions(rig: hs.Rig) -> None:
    kept: list[tuple[hs.LayerCalls, hs.LayerRequest]] = []

    class Keeping(hs.Layer):
        def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            kept.append((calls, request))
            calls.send(request)

    rig.with_layer(Keeping()).run(hs.Requests([0], [0], 8))
    calls, request = kept[0]
    with pytest.raises(hs.InputError, match="outside of the layer's methods"):
        calls.answer(request)


def test_places_that_a_rig_lacks_are_exceptions(rig: hs.Rig) -> None:
    for place in ({"volume": 1}, {"drive": 1}, {"volume": -1}, {"volume": 0, "drive": 0}, {"drive": "x"}):
        with pytest.raises(hs.InputError):
            rig.with_layer(hs.Layer(), **place)
    with pytest.raises(hs.InputError, match="a subclass of headstack.Layer"):
        rig.with_layer(hs.Layer)  # type: ignore[arg-type]


VALUES = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3))


@given(lbn=VALUES, sectors=VALUES, op=VALUES, delay=VALUES, at=VALUES)
def test_any_call_of_a_layer_is_served_or_an_exception(lbn: Any, sectors: Any, op: Any, delay: Any, at: Any) -> None:
    class Any_(hs.Layer):
        def submit(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
            calls.send(request, lbn=lbn, sectors=sectors, op=op, delay_ns=delay)
            calls.call_at(at)
            calls.issue(lbn, sectors, op)

    try:
        hs.Rig("atlas-10k").with_layer(Any_()).run(hs.Requests([0], [0], 8))
    except (hs.InputError, TypeError, OverflowError) as error:
        assert str(error)
