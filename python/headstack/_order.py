"""Orders written in Python."""

from __future__ import annotations

import difflib

from . import _native
from ._errors import InputError

__all__ = ["Order"]

#: What an order may say of itself.
KNOWS = ("cylinder", "position")
WHERE = ("drive", "host")


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


def checked(order: object) -> Order:
    """The order. Raises InputError for anything else, and for words that no order says of itself."""
    if not isinstance(order, Order):
        raise InputError(f"order: {type(order).__name__} (an object of a subclass of headstack.Order)")
    for name, words in (("knows", KNOWS), ("where", WHERE)):
        value = getattr(order, name)
        if value not in words:
            near = difflib.get_close_matches(str(value), words, 1)
            cure = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(words)}"
            raise InputError(f"order: {name} is {value!r}; {cure}")
    return order
