"""How long something takes, told so that a busy machine does not decide a test.

A machine that does other things makes a run slower and never quicker: so the best of several runs counts, in seconds
of the processor, and with the garbage collector off, since its work grows with whatever else lives in the process.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

ATTEMPTS = 8


def seconds_of(act: Callable[[], object]) -> float:
    """The seconds of processor time that `act` takes once."""
    gc.disable()
    begun = time.process_time()
    try:
        act()
    finally:
        gc.enable()
    return time.process_time() - begun


def takes_less_than(seconds: float, act: Callable[[], object]) -> bool:
    """Whether one of several runs of `act` takes less than `seconds` of processor time."""
    return any(seconds_of(act) < seconds for _ in range(ATTEMPTS))


def grows_at_most(
    times: float, prepare: Callable[[int], Callable[[], object]], smaller: int, larger: int, *, noise: float = 0.05
) -> bool:
    """Whether the work of size `larger` takes at most `times` the time of the work of size `smaller`.

    `prepare` makes the work of one size; making it is not measured. Each attempt asks for other sizes (by one, two,
    ...), as a reader may remember what it read. Under `noise` seconds nothing is told about growth, and it holds.
    """
    short = long = float("inf")
    for attempt in range(ATTEMPTS):
        short = min(short, seconds_of(prepare(smaller - attempt)))
        long = min(long, seconds_of(prepare(larger - attempt)))
        if long < noise or long <= times * short:
            return True
    return False
