"""Order of a campaign's runs, as a pure function of the plan: anybody can compute it again.

Places are drawn by SHA-256 of seed and name instead of a generator of random numbers, so that the order is the same in
every version of every language.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robot_runtime.campaign.plan import Plan

_SEEDS = 1 << 31


@dataclass(frozen=True)
class EpisodeName:
    """An episode of the plan's file: its number there, id, scene and content (``Episode.key``)."""

    number: int
    id: str
    scene: str
    key: str


@dataclass(frozen=True)
class Start:
    """One start, from which several policies run one after the other.

    Attributes:
        number: place in the order, from 0.
        episode: episode that begins there.
        repetition: number of the repetition, from 0.
        policies: names, in the order in which they run.
        seed: seed of every policy that runs from here.
    """

    number: int
    episode: EpisodeName
    repetition: int
    policies: tuple[str, ...]
    seed: int


def schedule(plan: Plan, episodes: Sequence[EpisodeName]) -> tuple[Start, ...]:
    """All starts of a plan in order, at most ``plan.test.largest``.

    Each repetition is a random order of all episodes, cut into blocks of ``order.block``; of two policies, each goes
    first in half of the starts of a block (one more or less in a block of odd length).
    """
    starts: list[Start] = []
    names = tuple(sorted(plan.policies))
    for repetition in range(plan.repetitions):
        ordered = _ordered(plan, episodes, repetition)
        for first in range(0, len(ordered), plan.order.block):
            block = ordered[first : first + plan.order.block]
            swapped = _swapped(plan, len(starts), len(block))
            for episode, swap in zip(block, swapped, strict=True):
                number = len(starts)
                chosen = _drawn(plan, names, number, swap)
                seed = _number(plan, "seed", number) % _SEEDS
                starts.append(Start(number, episode, repetition, chosen, seed))
                if len(starts) == plan.test.largest:
                    return tuple(starts)
    return tuple(starts)


def _ordered(plan: Plan, episodes: Iterable[EpisodeName], repetition: int) -> list[EpisodeName]:
    def place(episode: EpisodeName) -> tuple[int, int]:
        scene = _number(plan, "scene", repetition, episode.scene) if plan.order.by_scene else 0
        return scene, _number(plan, "episode", repetition, episode.number)

    return sorted(episodes, key=place)


def _swapped(plan: Plan, first: int, length: int) -> list[bool]:
    """For each start of a block, whether the second of two policies goes first."""
    drawn = sorted(range(length), key=lambda place: _number(plan, "swap", first + place))
    extra = _number(plan, "odd", first) % 2 if length % 2 else 0
    first_half = set(drawn[: length // 2 + extra])
    return [place in first_half for place in range(length)]


def _drawn(plan: Plan, names: tuple[str, ...], number: int, swap: bool) -> tuple[str, ...]:
    if len(names) == 2 and plan.order.policies_per_start in (None, 2):
        return names[::-1] if swap else names
    drawn = sorted(names, key=lambda name: _number(plan, "policy", number, name))
    return tuple(drawn[: plan.order.policies_per_start])


def _number(plan: Plan, what: str, *parts: object) -> int:
    text = "/".join(map(str, (plan.order.seed, what, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
