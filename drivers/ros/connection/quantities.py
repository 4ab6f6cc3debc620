"""The rule that each quantity has one source, for live topics and bags. Pure.

Two nodes that publish one quantity are mixed message by message. A node that was restarted under another name is not a
second source: the first one does not come back.
"""

from collections.abc import Iterator

from drivers.ros.connection.errors import TwoSources
from drivers.ros.connection.received import UNKNOWN

REMEDY = "stop one of the two (`rostopic info`, `ros2 topic info -v`), or name a topic that only one of them publishes"


class Sources:
    """The sources of quantities, in the order of their messages."""

    def __init__(self) -> None:
        self._newest: dict[str, str] = {}
        self._earlier: dict[str, set[str]] = {}

    def check(self, quantity: str, source: str) -> None:
        """Take a message's source. Raises ``TwoSources`` if it comes back after another one.

        Args:
            quantity: name of the quantity in messages, such as ``topic /odom``.
            source: name of the node.
        """
        newest = self._newest.get(quantity, source)
        if source != newest:
            earlier = self._earlier.setdefault(quantity, set())
            if source in earlier:
                raise two_sources(quantity, newest, source)
            earlier.add(newest)
        self._newest[quantity] = source

    def clear(self) -> None:
        """Forget all sources."""
        self._newest.clear()
        self._earlier.clear()


class TfTree:
    """Parents of frames, each with the node that publishes the transform."""

    def __init__(self) -> None:
        self._parents: dict[str, dict[str, str]] = {}
        self._sources = Sources()
        self._mixed: dict[str, TwoSources] = {}

    def add(self, child: str, parent: str, node: str) -> None:
        """Take a transform."""
        self._parents.setdefault(child, {}).setdefault(parent, node)
        try:
            self._sources.check(f"tf: the transform of {child} in {parent}", node)
        except TwoSources as error:
            self._mixed.setdefault(child, error)

    def chain(self, base: str, top: str) -> Iterator[str]:
        """Yield the frames from ``base`` up to, but without, ``top``; they end early where a parent is not known.

        Raises:
            TwoSources: a frame of the chain has two parents, or its transform two sources.
        """
        frame = base
        for _ in range(len(self._parents)):
            parents = self._parents.get(frame)
            if frame == top or parents is None:
                return
            yield frame
            if len(parents) > 1:
                known = [(parent, "" if node == UNKNOWN else f" (by {node})") for parent, node in parents.items()]
                first, second = (f"{parent}{by}" for parent, by in known[:2])
                raise two_sources(f"tf: frame {frame} has two parents, and its place", first, second)
            if frame in self._mixed:
                raise self._mixed[frame]
            frame = next(iter(parents))

    def parent(self, child: str) -> str | None:
        """The parent of a frame; None if it is not known."""
        return next(iter(self._parents.get(child, ())), None)


def two_sources(quantity: str, first: str, second: str) -> TwoSources:
    """Return the error that names both sources."""
    return TwoSources(f"{quantity} comes from two sources: {first} and {second}", REMEDY)
