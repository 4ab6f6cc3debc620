"""Registries of objects that installed packages offer under names, loaded when they are first asked for.

A package offers an object by an entry point; this project's own objects are offered in the same way::

    [project.entry-points."robot_runtime.task_kinds"]
    gatenav = "gatenav.kind:KIND"

An offer that cannot be used fails when it is asked for, and only then: nothing else stops working.
"""

import difflib
import sys
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import metadata
from typing import Generic, TypeVar, cast

from robot_runtime.errors import ConfigError, PluginError

T = TypeVar("T")

OWN_PACKAGE = "robot-runtime"


class Registry(Generic[T]):
    """The objects of one sort that installed packages offer.

    Args:
        group: name of the entry-point group, ``robot_runtime.task_kinds``.
        noun: word for one such object in messages, "kind of task".
        base: class that each object is an instance of; None for no condition.
        methods: names of the attributes that each object must have, for objects without a common class.
        classes: whether the objects are subclasses of ``base`` instead of its instances.
    """

    def __init__(
        self, group: str, noun: str, base: type | None = None, methods: Sequence[str] = (), classes: bool = False
    ) -> None:
        self.group = group
        self.noun = noun
        self._base = base
        self._methods = tuple(methods)
        self._classes = classes
        self._loaded: dict[tuple[tuple[str, ...], metadata.EntryPoint], T | PluginError] = {}

    def names(self) -> tuple[str, ...]:
        """All names on offer, sorted, this project's own first."""
        own = [name for name in self._offers() if self.is_own(name)]
        return (*own, *(name for name in self._offers() if name not in own))

    def is_own(self, name: str) -> bool:
        """Whether this project itself offers an object of that name."""
        return any(_package(offer) == OWN_PACKAGE for offer in self._offers().get(name, ()))

    def __contains__(self, name: object) -> bool:
        return name in self._offers()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def find(self, name: str) -> T | None:
        """The object of that name; None if no package offers one.

        Raises:
            PluginError: two packages offer the name, its module cannot be imported, or the object lacks what the
                registry asks for; names the package and the entry point.
        """
        offers = self._offers().get(name)
        if offers is None:
            return None
        entry_point = offers[0]
        # A package that was installed over itself may offer the same object twice.
        if len({(_package(offer), offer.value) for offer in offers}) > 1:
            owners = " and ".join(_described(offer) for offer in offers)
            raise PluginError(f"the {self.noun} {name!r} is offered twice, by {owners}", "uninstall one of them")
        key = tuple(sys.path), entry_point
        if key not in self._loaded:
            self._loaded[key] = self._checked(entry_point)
        item = self._loaded[key]
        if isinstance(item, PluginError):
            raise PluginError(item.message, item.remedy)
        return item

    def load(self, name: str) -> T:
        """The object of that name.

        Raises:
            ConfigError: no package offers one.
            PluginError: as :meth:`find`.
        """
        item = self.find(name)
        if item is None:
            raise ConfigError(f"there is no {self.noun} {name!r}", self.suggestion(name))
        return item

    def usable(self) -> dict[str, T]:
        """The objects by name, without those that cannot be loaded, which fail where they are asked for by name."""
        items = {name: self._usable(name) for name in self.names()}
        return {name: item for name, item in items.items() if item is not None}

    def suggestion(self, name: str) -> str:
        """Remedy for a name that nobody offers: the nearest name on offer, or all of them."""
        near = difflib.get_close_matches(name, self.names(), n=1)
        return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(self.names())}"

    def _usable(self, name: str) -> T | None:
        try:
            return self.find(name)
        except PluginError:
            return None

    def _offers(self) -> dict[str, list[metadata.EntryPoint]]:
        return _offers(self.group, tuple(sys.path))

    def _checked(self, entry_point: metadata.EntryPoint) -> T | PluginError:
        """The object, or why it cannot be used, which is found out once."""
        remedy = f"correct the package {_package(entry_point)}, install it again, or uninstall it"
        where = f"the {self.noun} {entry_point.name!r} of {_described(entry_point)}"
        try:
            item = entry_point.load()
        except Exception as error:  # noqa: BLE001 (a stranger's module may raise anything while it is imported)
            return PluginError(f"{where} cannot be loaded: {type(error).__name__}: {error}", remedy)
        if self._base is not None and not self._fits(item, self._base):
            wanted = "a subclass" if self._classes else "an instance"
            return PluginError(f"{where} is not {wanted} of {self._base.__module__}.{self._base.__qualname__}", remedy)
        lacking = [method for method in self._methods if not hasattr(item, method)]
        if lacking:
            return PluginError(f"{where} has no {' and no '.join(lacking)}", remedy)
        checked: T = item
        return checked

    def _fits(self, item: object, base: type) -> bool:
        return isinstance(item, type) and issubclass(item, base) if self._classes else isinstance(item, base)


def _package(entry_point: metadata.EntryPoint) -> str:
    return _name_of(entry_point.dist) if entry_point.dist is not None else "an unknown package"


@cache  # reading a package's metadata takes a millisecond
def _name_of(package: metadata.Distribution) -> str:
    return package.name


def _described(entry_point: metadata.EntryPoint) -> str:
    return f"{_package(entry_point)} (entry point {entry_point.name} = {entry_point.value})"


@lru_cache(maxsize=64)
def _offers(group: str, path: tuple[str, ...]) -> dict[str, list[metadata.EntryPoint]]:
    """Entry points of a group by name, sorted; the search path is an argument because the answer depends on it."""
    offers: dict[str, list[metadata.EntryPoint]] = {}
    for entry_point in sorted(_entry_points(path).select(group=group)):
        offers.setdefault(entry_point.name, []).append(entry_point)
    return offers


@lru_cache(maxsize=8)  # of all groups at once, because each question would read the metadata of every package again
def _entry_points(_path: tuple[str, ...]) -> metadata.EntryPoints:
    return cast(metadata.EntryPoints, metadata.entry_points())  # before Python 3.12 a mapping, which selects, too
