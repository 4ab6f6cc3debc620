"""Reader of an ONNX file's version, operator sets, operators and external data, without the onnx package.

The file is a protocol buffer. A field consists of a number, a wire type and a value; a message is a field of bytes that
holds fields. The numbers are those of ``onnx/onnx.proto``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 16

_MODEL_IR, _MODEL_GRAPH, _MODEL_OPSET, _MODEL_FUNCTION = 1, 7, 8, 25
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
_FUNCTION_NODE = 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE_INITIALIZER = 1, 5, 15
_NODE_OPERATOR, _NODE_ATTRIBUTE = 4, 5
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = 5, 6, 10, 11
_ATTRIBUTE_SPARSE_TENSOR, _ATTRIBUTE_SPARSE_TENSORS = 22, 23
_SPARSE_VALUES, _SPARSE_INDICES = 1, 2
_TENSOR_EXTERNAL_DATA, _TENSOR_DATA_LOCATION = 13, 14


@dataclass(frozen=True)
class OnnxFile:
    """Facts about an ONNX file.

    Attributes:
        ir_version: version of the file format.
        opsets: version of each operator set by domain; '' is ONNX's own.
        data: names of the files that hold weights.
        operators: names of the operators.
    """

    ir_version: int
    opsets: dict[str, int]
    data: frozenset[str]
    operators: frozenset[str]


def read_onnx(data: bytes) -> OnnxFile:
    """Read the facts. Raises ``ValueError`` if ``data`` is no ONNX model."""
    ir_version, opsets, graphs = 0, {}, 0
    found: list[tuple[str, str]] = []
    view = memoryview(data)
    for number, value in _fields(view):
        if number == _MODEL_IR and isinstance(value, int):
            ir_version = value
        elif number == _MODEL_OPSET and isinstance(value, memoryview):
            domain, version = "", 0
            for inner, content in _fields(value):
                if inner == _OPSET_DOMAIN and isinstance(content, memoryview):
                    domain = bytes(content).decode("utf-8")
                elif inner == _OPSET_VERSION and isinstance(content, int):
                    version = content
            opsets["" if domain == "ai.onnx" else domain] = version
        elif number == _MODEL_GRAPH and isinstance(value, memoryview):
            graphs += 1
            found += _named(value, _GRAPH, 0)
        elif number == _MODEL_FUNCTION and isinstance(value, memoryview):
            found += _named(value, _FUNCTION, 0)
    if not ir_version or graphs != 1 or "" not in opsets:
        raise ValueError("it has no IR version, no operator set or no graph")
    files, operators = (frozenset(name for kind, name in found if kind == wanted) for wanted in (_TENSOR, _NODE))
    return OnnxFile(ir_version, opsets, files, operators)


_GRAPH, _FUNCTION, _NODE, _ATTRIBUTE, _TENSOR, _SPARSE = "graph", "function", "node", "attribute", "tensor", "sparse"

_CHILDREN = {
    _GRAPH: {_GRAPH_NODE: _NODE, _GRAPH_INITIALIZER: _TENSOR, _GRAPH_SPARSE_INITIALIZER: _SPARSE},
    _FUNCTION: {_FUNCTION_NODE: _NODE},
    _NODE: {_NODE_ATTRIBUTE: _ATTRIBUTE},
    _ATTRIBUTE: {
        _ATTRIBUTE_TENSOR: _TENSOR,
        _ATTRIBUTE_TENSORS: _TENSOR,
        _ATTRIBUTE_GRAPH: _GRAPH,
        _ATTRIBUTE_GRAPHS: _GRAPH,
        _ATTRIBUTE_SPARSE_TENSOR: _SPARSE,
        _ATTRIBUTE_SPARSE_TENSORS: _SPARSE,
    },
    _SPARSE: {_SPARSE_VALUES: _TENSOR, _SPARSE_INDICES: _TENSOR},
}
"""The fields that may hold tensors, directly or nested: message -> field -> message."""


def _named(message: memoryview, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield (node, operator) of each node in a message, and (tensor, file) of each tensor in another file."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"graphs are nested more than {_MAX_DEPTH // 3} deep")
    for number, value in _fields(message):
        if kind == _TENSOR:
            if number == _TENSOR_EXTERNAL_DATA and isinstance(value, memoryview):
                entry = {key: bytes(text) for key, text in _fields(value) if isinstance(text, memoryview)}
                if entry.get(_ENTRY_KEY) == b"location":
                    yield _TENSOR, entry.get(_ENTRY_VALUE, b"").decode("utf-8", errors="replace")
            elif number == _TENSOR_DATA_LOCATION and value != 0:
                yield _TENSOR, ""
            continue
        if kind == _NODE and number == _NODE_OPERATOR and isinstance(value, memoryview):
            yield _NODE, bytes(value).decode("utf-8", errors="replace")
        child = _CHILDREN[kind].get(number)
        if child is not None and isinstance(value, memoryview):
            yield from _named(value, child, depth + 1)


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield (number, value) of each field; values of fixed width, which are not needed, as 0."""
    position, end = 0, len(message)
    while position < end:
        key, position = _varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire_type)
        if wire_type == _BYTES:
            size, position = _varint(message, position)
        if size is None or position + size > end:
            raise ValueError("it is cut off or not ONNX")
        yield number, message[position : position + size] if wire_type == _BYTES else 0
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            break
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("it is cut off or not ONNX")
