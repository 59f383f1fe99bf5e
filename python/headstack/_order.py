"""Orders written in Python."""

from __future__ import annotations

from . import _native

__all__ = ["Order"]


class Order:
    """An order of your own: which of the waiting requests is served next.

    A subclass has `choose(self, queue)`, which returns an index. `queue` has a length and the columns `lbn`, `sectors`, `op`,
    `cylinder`, `head`, `arrived_ns` and `age_ns`, oldest first; `now_ns`, `arm_cylinder`, `cylinders` and `last_lbn`; and
    `positioning_ns`, seek and rotational latency of each, if `knows` is `position`.
    """

    #: What the order may use: `cylinder`, or `position` for positioning times, which cost time at each choice.
    knows: str = "cylinder"
    #: Where it chooses: in each `drive`, or in the queues of the `host` (the rig then needs `host.queue.order`).
    where: str = "drive"

    def choose(self, queue: _native.Queue) -> int:
        """The index of the request to serve next. An exception, or an index out of range, ends the run with it."""
        raise NotImplementedError(f"{type(self).__name__}.choose(queue) returns the index of the next request")
