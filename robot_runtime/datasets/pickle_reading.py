"""Reading of pickles of plain data, in a sandbox.

Nothing else in the runtime reads pickles of datasets; :mod:`robot_runtime.datasets.pickle_sandbox` has the limits.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from robot_runtime.datasets import pickle_sandbox
from robot_runtime.errors import EpisodeError

_WALL_S = 2.0 * pickle_sandbox.MAX_CPU_S


def read_pickle(path: Path) -> Any:
    """The plain data of a pickle, gzipped or not, unpickled in the sandbox. Raises ``EpisodeError``."""
    try:
        with path.open("rb") as source:
            # -I -S: no environment, no site-packages; the script gets the standard library and nothing else.
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(Path(pickle_sandbox.__file__))],
                stdin=source,
                capture_output=True,
                timeout=_WALL_S,
                check=False,
                env={},
                cwd="/",
            )
    except FileNotFoundError:
        raise EpisodeError(f"{path}: no such file", "check the path") from None
    except OSError as error:
        raise EpisodeError(f"{path}: cannot be read: {error}", "check that it is a readable file") from error
    except subprocess.TimeoutExpired:
        raise EpisodeError(f"{path}: takes longer than {_WALL_S:g} s to read", "download the file again") from None
    if done.returncode != 0:
        raise EpisodeError(
            f"{path}: {_reason(done)}", "download the file again from its publisher; do not open it by other means"
        )
    return json.loads(done.stdout)


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    output = " ".join(done.stderr.decode(errors="replace").split())
    if done.returncode == pickle_sandbox.REFUSED:
        return output
    if done.returncode < 0:
        return f"the sandbox ended with {signal.Signals(-done.returncode).name}: the file exceeds its limits"
    return f"the sandbox failed with status {done.returncode}: {output[-300:]}"
