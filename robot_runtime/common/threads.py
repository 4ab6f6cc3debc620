"""Work in a thread for as long as a context lasts, and threads that no collection of garbage holds up."""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def background(work: Callable[[threading.Event], None], name: str, limit_s: float | None = None) -> Iterator[None]:
    """Run ``work`` in a thread; at the end of the context, set the event that it gets, and wait for its return.

    Args:
        work: function of the event.
        name: name of the thread.
        limit_s: longest wait; None for any.
    """
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(limit_s)


@contextmanager
def short_collections() -> Iterator[None]:
    """Leave all objects that there are out of collections of garbage, unless somebody has done so already.

    A collection of some 400,000 objects stops every thread for 0.1 to 0.3 s: no command is sent, no message is taken.
    """
    own = gc.get_freeze_count() == 0
    if own:
        gc.freeze()
    try:
        yield
    finally:
        if own:
            gc.unfreeze()
