"""Documents in YAML, read within limits of time and memory and without YAML 1.1's surprises.

``robot_runtime.common.config`` turns them into typed dataclasses.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from robot_runtime.errors import ConfigError

SHORT_FLOAT = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
"""Text that YAML 1.2 and :func:`read_yaml` read as a number and PyYAML's own writers leave unquoted: 1e-3."""

_SURPRISING = re.compile(r"^[-+]?(0[0-7_]+$|0b|[0-9][0-9_]*:)")
"""Octal, binary and base-60 numbers of YAML 1.1, which people and YAML 1.2 read otherwise: 030 is 24, 1:30 is 90."""

_ODD_SPACES = "\u00a0\u2007\u202f\u3000\u200b\ufeff"
_ODD_SPACE = re.compile(rf"^[{_ODD_SPACES}]|[:,\[{{#-][{_ODD_SPACES}]|[{_ODD_SPACES}](?:$|[\]}}#])")

_REMEDIES = {
    "means": "write the number in decimal without leading zeros, or in quotes if it is text",
    "cannot start any token": "indent with spaces, not with tabs; put text that begins with @, % or ` in quotes",
    "is repeated": "keep one of the two entries",
}
"""Remedies by a part of the problem's text."""

MAX_YAML_BYTES = 1 << 25
MAX_YAML_DEPTH = 64
MAX_ALIASED_SIZE = 1 << 20
"""Values and characters that the aliases of a document may stand for: a page of text can expand to gigabytes."""

MAX_SCALAR_DIGITS = 400
"""Characters of a number: reading one takes time that grows with their square."""

_MAX_KEY_DIGITS = 17  # longer integers can be chosen so that a dictionary takes quadratic time
_MAX_DIRECTIVES = 16  # libyaml compares each %TAG line with all before it

FASTEST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _refusal(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


class _Loader(FASTEST_LOADER):  # type: ignore[misc, valid-type]
    """YAML's safe subset, less three traps of PyYAML: a repeated key loses the first value, 1e-3 is text, 030 is 24."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                raise _refusal(key, f"the key {key.value!r} is repeated")
            seen.add(key.value)
            if key.tag == "tag:yaml.org,2002:int" and len(key.value) > _MAX_KEY_DIGITS:
                raise _refusal(key, f"a key of {len(key.value)} digits")
        return dict(super().construct_mapping(node, deep=deep))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if is_number and len(node.value) > MAX_SCALAR_DIGITS:
            raise _refusal(node, f"a number of {len(node.value)} characters")
        try:
            value = super().construct_object(node, deep=deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            # PyYAML hands impossible dates and tagged text such as `!!int x` to Python unchecked.
            text = node.value if isinstance(node, yaml.ScalarNode) else "a collection"
            raise _refusal(node, f"{text!r:.60} is not a valid {node.tag.rpartition(':')[2]:.60}: {error}") from error
        if is_number and _SURPRISING.match(node.value):
            raise _refusal(node, f"the number {node.value} means {value} in YAML 1.1")
        return value


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", SHORT_FLOAT, list("-+0123456789"))


class YamlDumper(yaml.SafeDumper):
    """Writer that quotes what would be read as a number, such as the commit 2750131761e4, and invisible characters."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if any(space in text for space in _ODD_SPACES) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


YamlDumper.add_representer(str, _represent_text)
YamlDumper.add_implicit_resolver("tag:yaml.org,2002:float", SHORT_FLOAT, list("-+0123456789"))


def dump_yaml(document: Any, dumper: type[YamlDumper] = YamlDumper, **style: Any) -> str:
    """YAML that :func:`read_yaml` reads as the same document, by default in the document's own order."""
    return str(yaml.dump(document, Dumper=dumper, **({"sort_keys": False, "allow_unicode": True} | style)))


def read_yaml(path: Path) -> Any:
    """The document in a YAML file.

    Raises:
        ConfigError: missing, unreadable, or refused by :func:`parse_yaml`; names file, line and column.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_YAML_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file", "check the path; what has a name is listed by `robot-runtime info`"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}", "check that it is a readable UTF-8 text file") from error
    return parse_yaml(data, str(path))


def parse_yaml(content: str | bytes, where: str) -> Any:
    """The document that a text of any origin holds.

    Time and memory are bounded by the text's length: what aliases stand for, depth, and digits of numbers are limited.

    Args:
        content: text, or its UTF-8 bytes.
        where: the text's place, for messages.

    Raises:
        ConfigError: too large, not UTF-8, not YAML, with a repeated key or an impossible value, or beyond a limit;
            names ``where``, line and column.
    """
    if len(content) > MAX_YAML_BYTES:
        raise ConfigError(f"{where}: has more than {MAX_YAML_BYTES} bytes", "check that it is the right file")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: cannot be read: {error}", "write it as UTF-8 text") from error
    if text.startswith("%YAML:1.0") or "!!opencv-matrix" in text:
        raise ConfigError(
            f"{where}: is a file of OpenCV's FileStorage",
            "convert a camera's calibration with `robot-runtime calibrate import`",
        )
    with _yaml_errors(where, text):
        _check_extent(text, where)
        return yaml.load(text, Loader=_Loader)


def _check_extent(text: str, where: str) -> None:
    """Check depth and aliases before PyYAML follows them on the stack."""
    if text.count("\n%") > _MAX_DIRECTIVES:
        raise ConfigError(f"{where}: has more than {_MAX_DIRECTIVES} lines that begin with %", "remove them")
    sizes: dict[str, int] = {}  # by anchor: values and characters
    open_sizes, open_anchors = [0], [""]
    aliased = documents = 0
    for event in yaml.parse(text, Loader=FASTEST_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                message = f"{where}: line {line} begins a second document ('---')"
                raise ConfigError(message, "keep one document in the file: remove that line, or split the file there")
        elif isinstance(event, yaml.CollectionStartEvent):
            open_sizes.append(1)
            open_anchors.append(event.anchor or "")
            if len(open_sizes) > MAX_YAML_DEPTH + 1:
                raise _too_deep(where, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = open_sizes.pop(), open_anchors.pop()
            open_sizes[-1] += size
            sizes[anchor] = size
        elif isinstance(event, yaml.ScalarEvent):
            if not event.style and (space := _ODD_SPACE.search(event.value)):
                raise _odd_space(f"{where}: line {line}: {event.value!r:.60}", space[0])
            size = 1 + len(event.value)
            open_sizes[-1] += size
            if event.anchor:
                sizes[event.anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            anchor = event.anchor or ""
            if anchor in open_anchors:
                raise ConfigError(f"{where}: line {line}: {anchor!r} holds itself", "write the value out")
            size = sizes.get(anchor, 0)
            open_sizes[-1] += size
            aliased += size
            if aliased > MAX_ALIASED_SIZE:
                raise ConfigError(
                    f"{where}: line {line}: its aliases stand for more than {MAX_ALIASED_SIZE} values and characters",
                    "write the values out",
                )


def _odd_space(found: str, text: str) -> ConfigError:
    code = ord(next(character for character in text if character in _ODD_SPACES))
    remedy = "replace it by a plain space; it often comes with text copied from a web page"
    return ConfigError(f"{found} has the invisible character U+{code:04X}", remedy)


def _too_deep(where: str, line: int) -> ConfigError:
    return ConfigError(
        f"{where}: line {line} is nested more than {MAX_YAML_DEPTH} deep", "write it as the documentation shows"
    )


@contextmanager
def _yaml_errors(where: str, text: str) -> Iterator[None]:
    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark and "maximum nesting depth" in str(error):  # libyaml looks ahead, and has a limit of its own
            raise _too_deep(where, mark.line + 1) from error
        last = mark.line if mark else -2
        for number, line in enumerate(text.splitlines()[: last + 1]):
            if number >= last - 1 and (space := _ODD_SPACE.search(line)):  # it can hide the end of a key
                raise _odd_space(f"{where}: line {number + 1}: {line!r:.60}", space[0]) from error
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        remedy = next((remedy for part, remedy in _REMEDIES.items() if part in str(problem)), None)
        raise ConfigError(
            f"{where}:{place} is not valid YAML: {problem!s:.200}", remedy or "correct the YAML at that place"
        ) from error
