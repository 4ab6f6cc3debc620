"""Facets: properties of episodes by which tables divide scores, see ``Measures.facets``."""

from collections.abc import Iterable, Sequence

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.summary import EpisodeScore


def check_facets(scores: Iterable[EpisodeScore], by: Sequence[str]) -> None:
    """Raise ``ConfigError`` if no scored episode has one of these facets."""
    known = {"split"} | {name for score in scores for name in score.facets}
    for name in by:
        if name not in known:
            raise ConfigError(f"no episode has a {name!r} to divide scores by", f"use {', '.join(sorted(known))}")


def part_texts(part: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Facets and values as tables print them."""
    return tuple(f"{name} {value}" if value else f"without {name}" for name, value in part)
