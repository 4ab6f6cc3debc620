"""Griffe extension: docstrings' cross-reference roles and literal-block marks as Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc|obj):`~?([^`]+)`")
_LITERAL_BLOCK = re.compile(r"::[ \t]*$", re.MULTILINE)


class DocstringRoles(Extension):
    """Rewrite each docstring before its sections are parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Replace the marks in one object's docstring.

        Args:
            obj: any module, class, function or attribute.
            kwargs: not used.
        """
        if obj.docstring is not None:
            obj.docstring.value = markdown_of(obj.docstring.value)


def markdown_of(docstring: str) -> str:
    """A docstring with its marks as Markdown."""
    return _LITERAL_BLOCK.sub(":", _ROLE.sub(lambda role: f"`{role[1]}`", docstring))
