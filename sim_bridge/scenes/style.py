"""The taste of a household: which colors and materials its flat has."""

from __future__ import annotations

import random
from dataclasses import dataclass

from sim_bridge.scenes.furniture.kit import Surface

VIVID = ("red", "orange", "yellow", "green", "blue", "purple", "pink")
CALM = ("gray", "beige", "blue", "green", "brown")
_WALLS = ("white", "cream", "sand", "sage", "sky", "rose", "mist", "beige")
_WOODS = ("oak", "birch", "walnut", "ebony")


@dataclass(frozen=True)
class RoomFinish:
    """The surfaces of a room's shell; ``accent`` covers one wall, if any."""

    floor: Surface
    wall: Surface
    accent: Surface | None


@dataclass(frozen=True)
class Style:
    """Surfaces that recur through a flat."""

    wood: Surface
    dark_wood: Surface
    lacquer: Surface
    upholstery: Surface
    second_fabric: Surface
    linen: Surface
    metal: Surface
    worktop: Surface
    kitchen: Surface
    plank: Surface
    chair_style: int

    def finish(self, category: str, rng: random.Random) -> RoomFinish:
        """The shell's surfaces for a room of that category."""
        if category == "bathroom":
            tile = rng.choice(("white", "sky", "mist", "sage"))
            floor = Surface(rng.choice(("gray", "white", "beige")), rng.choice(("tiles", "checker")))
            return RoomFinish(floor, Surface(tile, "tiles"), None)
        if category == "kitchen":
            floor = Surface(rng.choice(("beige", "gray", "terracotta", "white")), rng.choice(("tiles", "checker")))
            return RoomFinish(floor, Surface(rng.choice(_WALLS), "plaster"), None)
        floor = self.plank
        if category in ("bedroom", "study") and rng.random() < 0.4:
            floor = Surface(rng.choice(("gray", "beige", "sage", "blue")), "carpet")
        wall = rng.choice(_WALLS)
        accent = None
        if rng.random() < 0.65:
            accents = (
                Surface(rng.choice(("white", "terracotta", "sand")), "brick"),
                Surface(wall, "stripes"),
                Surface(rng.choice(("sage", "sky", "rose", "blue", "green", "gray")), "plaster"),
            )
            accent = rng.choice(accents)
        return RoomFinish(floor, Surface(wall, "plaster"), accent)


def draw_style(rng: random.Random) -> Style:
    """A household's style."""
    wood, dark = rng.sample(_WOODS, 2)
    fabrics = rng.sample((*CALM, "red", "purple", "orange"), 2)
    return Style(
        wood=Surface(wood, "wood"),
        dark_wood=Surface(dark, "wood"),
        lacquer=rng.choice((Surface("white"), Surface(wood, "wood"), Surface("mist"), Surface("gray"))),
        upholstery=Surface(fabrics[0], "fabric"),
        second_fabric=Surface(fabrics[1], "fabric"),
        linen=Surface(rng.choice(("white", "cream", "mist")), "fabric"),
        metal=rng.choice((Surface("black"), Surface("chrome"), Surface("gray"))),
        worktop=rng.choice((Surface("white", "marble"), Surface("gray", "marble"), Surface(wood, "wood"))),
        kitchen=rng.choice((Surface("white"), Surface("sage"), Surface("blue"), Surface(wood, "wood"), Surface("red"))),
        plank=Surface(rng.choice(("oak", "birch", "walnut")), "planks"),
        chair_style=rng.randrange(3),
    )


def vivid(rng: random.Random, texture: str | None = None) -> Surface:
    """A bright surface."""
    return Surface(rng.choice(VIVID), texture)
