"""Inner loops that numpy cannot express, compiled by numba.

Import this, and modules that use it, only where they are called: numba takes a second to load, and each function a
second or more to compile the first time that it runs on a machine.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: Any) -> F:
    """``numba.njit`` with the machine code kept next to the module, else in the user's cache, else for this process.

    Args:
        function: function to be compiled.
        options: other ones of ``njit``; ``functools.partial(compiled, error_model="numpy")`` is a decorator with them.
    """
    try:
        return cast(F, numba.njit(function, cache=True, nogil=True, **options))
    except RuntimeError:  # numba found no folder that it may write to, as in a read-only container
        return cast(F, numba.njit(function, nogil=True, **options))
