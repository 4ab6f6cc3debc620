"""Differences of documents, the nested mappings and lists of YAML and JSON files."""

from collections.abc import Iterator, Mapping
from typing import Any


def flat(document: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings, and lists of them, as one mapping: ``camera.width``, ``inputs[0].name``."""
    if isinstance(document, Mapping):
        items = [(f"{prefix}.{key}" if prefix else str(key), value) for key, value in document.items()]
    elif isinstance(document, list) and any(isinstance(item, Mapping) for item in document):
        items = [(f"{prefix}[{position}]", value) for position, value in enumerate(document)]
    else:
        return {prefix: document}
    return {name: value for key, item in items for name, value in flat(item, key).items()}


def differences(a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """The differences of two documents as (name as :func:`flat` has it, value of a, value of b); None for none."""
    left, right = flat(a), flat(b)
    for name in {**left, **right}:
        if left.get(name) != right.get(name):
            yield name, left.get(name), right.get(name)
