"""Work in a thread for as long as a context lasts."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def background(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run ``work`` in a thread; at the end of the context, set the event that it gets, and wait for its return."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
