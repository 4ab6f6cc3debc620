"""A local ROS network for a benchmark: a master on a free port, this process as a node, and further programs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from robot_runtime.errors import DeviceFault, DriverMissing

# Ends with this process in any case, because the pipe closes.
MASTER = """
import sys, rosmaster.master
master = rosmaster.master.Master(port=0)
master.start()
print(master.uri, flush=True)
sys.stdin.read()
"""
STOP_LIMIT_S = 10.0


class Network:
    """Starts programs as nodes of the network; their output goes to files."""

    def __init__(self, stack: ExitStack, home: Path) -> None:
        self._stack = stack
        self._home = home
        self._outputs: list[Path] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Run this Python with arguments until the network ends."""
        with self._output() as output:
            program = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=subprocess.STDOUT)
        self._stack.callback(end_program, program)
        return program

    def start_master(self) -> str:
        """Return the address of a new ROS master; empty if it did not start."""
        with self._output() as output:
            master = subprocess.Popen(
                [sys.executable, "-c", MASTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output
            )
        self._stack.callback(end_program, master)
        assert master.stdout is not None
        return master.stdout.readline().decode().strip()

    def _output(self) -> BinaryIO:
        path = self._home / f"program{len(self._outputs)}.txt"
        self._outputs.append(path)
        return path.open("wb")

    def stop(self, program: subprocess.Popen[bytes]) -> None:
        """End a program."""
        end_program(program)

    def output_tail(self) -> str:
        """Return the end of every program's output, for error messages."""
        return "\n".join(path.read_text(encoding="utf-8", errors="replace")[-2000:] for path in self._outputs)


@contextmanager
def local_network(node_name: str) -> Iterator[Network]:
    """Run a network of which this process is a node; possible once in the life of a process.

    Raises:
        DriverMissing: There is no ROS 1 for this Python.
        DeviceFault: No master could be started.
    """
    try:
        import rosmaster  # noqa: F401 - started below, in a process of its own
        import rospy
    except ImportError as error:
        raise DriverMissing(
            f"ROS 1 cannot be imported: {error}",
            "use the interpreter .venv/bin/python, as `make bench` does; if that cannot import it either, install it "
            "with `bash .ci/setup dev`, on a system that has it",
        ) from error

    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        network = Network(stack, Path(home))
        os.environ.pop("ROS_HOSTNAME", None)
        os.environ |= {"ROS_HOME": home, "ROS_LOG_DIR": home, "ROS_IP": "127.0.0.1"}
        uri = network.start_master()
        if not uri:
            raise DeviceFault(
                f"a ROS master could not be started: {network.output_tail()}", "solve the problem in its output"
            )
        os.environ["ROS_MASTER_URI"] = uri
        rospy.init_node(node_name, argv=sys.argv[:1], disable_signals=True)
        stack.callback(rospy.signal_shutdown, "the benchmark has ended")
        try:
            yield network
        except BaseException:
            print(network.output_tail(), file=sys.stderr)
            raise


def end_program(program: subprocess.Popen[Any]) -> None:
    """End a program by the means that stops it, and close its pipes."""
    if program.stdin is not None:
        program.stdin.close()
    program.terminate()
    try:
        program.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    if program.stdout is not None:
        program.stdout.close()
