"""Orders written in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headstack as hs


@pytest.fixture
def busy() -> hs.Fio:
    """Random reads, sixteen outstanding."""
    return hs.Fio(rw="randread", bs="4k", size="4g", ioengine="libaio", iodepth=16, number_ios=300)


class ShortestPositioning(hs.Order):
    """SPTF."""

    knows = "position"

    def choose(self, queue: Any) -> int:
        return int(np.argmin(queue.positioning_ns))


class Oldest(hs.Order):
    """FCFS."""

    def choose(self, queue: Any) -> int:
        assert queue.positioning_ns is None
        assert np.all(np.diff(queue.arrived_ns) >= 0)
        assert len(queue) == len(queue.lbn) == len(queue.cylinder) == len(queue.age_ns)
        return 0


def responses(run: hs.Results) -> Any:
    return run.to_dict()["headstack"]["response_ms"]


def test_order_in_python_equals_the_built_in_one(busy: hs.Fio) -> None:
    rig = hs.Rig("atlas-10k")
    for order, name in ((ShortestPositioning(), "sptf"), (Oldest(), "fcfs")):
        own = rig.with_order(order).run(busy, seed=2)
        assert responses(own) == responses(rig.set("drive.order", name).run(busy, seed=2))


def test_order_of_the_host_takes_its_place(busy: hs.Fio) -> None:
    class Host(Oldest):
        where = "host"

    rig = hs.Rig("atlas-10k", host={"queue": {"order": "sptf"}}, drive={"queue_depth": 1})
    assert responses(rig.with_order(Host()).run(busy)) == responses(rig.set("host.queue.order", "fcfs").run(busy))
    with pytest.raises(hs.InputError, match="order"):
        hs.Rig("atlas-10k").with_order(Host()).run(busy)


def test_exception_in_an_order_ends_the_run(busy: hs.Fio) -> None:
    class Failing(hs.Order):
        def choose(self, queue: Any) -> int:
            raise ZeroDivisionError("of the test")

    with pytest.raises(ZeroDivisionError, match="of the test"):
        hs.Rig("atlas-10k").with_order(Failing()).run(busy)


@pytest.mark.parametrize("answer", [99, -1, None, "0", 1.0, 2**70])
def test_answer_that_is_no_index_is_an_exception(busy: hs.Fio, answer: Any) -> None:
    class Wrong(hs.Order):
        def choose(self, queue: Any) -> Any:
            return answer

    with pytest.raises((IndexError, hs.InputError, OverflowError)):
        hs.Rig("atlas-10k").with_order(Wrong()).run(busy)


def test_order_without_choose_says_what_is_missing(busy: hs.Fio) -> None:
    with pytest.raises(NotImplementedError, match="returns the index"):
        hs.Rig("atlas-10k").with_order(hs.Order()).run(busy)
    with pytest.raises(hs.InputError, match="a subclass of headstack.Order"):
        hs.Rig("atlas-10k").with_order("sptf")  # type: ignore[arg-type]
