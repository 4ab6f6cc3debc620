"""What belongs in which room.

One function per kind of room puts its furniture in, the indispensable pieces first; a piece that finds no place is left
out.
"""

from __future__ import annotations

from collections.abc import Callable

from sim_bridge.scenes.furniture import decor, seating, small, storage, wet_rooms
from sim_bridge.scenes.furniture.kit import Model, Surface
from sim_bridge.scenes.placement import Placed, RoomPlanner
from sim_bridge.scenes.rect import SIDES, Side
from sim_bridge.scenes.style import Style, vivid

OPPOSITE: dict[Side, Side] = {"north": "south", "south": "north", "west": "east", "east": "west"}
_ART = ("landscape", "landscape_two", "abstract", "abstract_two")


def living_room(room: RoomPlanner, style: Style) -> None:
    """Sofa and television face each other; a table between, a shelf, an easy chair, plants."""
    rng = room.rng
    floor = room.room.floor
    long = max(floor.width, floor.depth)
    seat = None
    for width in (2.1, 1.75, 1.5):
        if width <= 0.55 * long:
            seat = room.against_wall(seating.sofa(width, style.upholstery, style.dark_wood), front_m=0.35)
        if seat is not None:
            break
    _television(room, style, seat)
    if seat is not None and seat.side is not None:
        room.keep_free.pop()
        _sofa_corner(room, style, seat)
    if room.with_desk:
        workplace(room, style)
    room.against_wall(storage.bookshelf(rng.choice((0.8, 0.95)), rng.choice((1.48, 1.84)), style.wood), front_m=0.4)
    if floor.width * floor.depth > 13 and room.rng.random() < 0.7:
        _dining(room, style)
    if floor.width * floor.depth > 17:
        room.against_wall(storage.fireplace(Surface(rng.choice(("white", "terracotta")), "brick")), front_m=0.6)
    if floor.width * floor.depth > 11:
        room.against_wall(seating.armchair(style.second_fabric, style.dark_wood), corner=True)
    room.against_wall(decor.floor_lamp(Surface(rng.choice(("cream", "white", "orange")))), corner=True)
    room.against_wall(_large_plant(room), corner=True)
    if floor.width * floor.depth > 16:
        room.against_wall(storage.sideboard(1.4, style.wood, style.lacquer), front_m=0.3)
        room.against_wall(_large_plant(room), corner=True)
    _pictures(room, style, 2 if long < 4.5 else 4)


def _television(room: RoomPlanner, style: Style, seat: Placed | None) -> None:
    rng = room.rng
    sides = [OPPOSITE[seat.side]] if seat is not None and seat.side is not None else []
    width = rng.choice((0.9, 1.1))
    stand = storage.tv_stand(rng.choice((1.2, 1.5)), style.wood, style.lacquer)
    center = None if seat is None else _along(seat)
    spot = room.against_wall(stand, sides, center=center) or room.against_wall(stand, sides)
    spot = spot or room.against_wall(stand)
    if spot is not None:
        if rng.random() < 0.3 and spot.side is not None:
            hung = room.hung(small.television(width, True), 0.85, [spot.side], center=_along(spot))
            if hung is not None:
                return
        room.on(small.television(width, False), spot, yaw_deg=0.0, at=(0.5, 0.5))


def _along(item: Placed) -> float:
    """The middle of an item along the wall that it stands against."""
    return item.rect.center[0] if item.side in ("north", "south") else item.rect.center[1]


def _sofa_corner(room: RoomPlanner, style: Style, seat: Placed) -> None:
    rng = room.rng
    table = storage.coffee_table(rng.choice((0.85, 1.0)), 0.5, style.wood, style.metal)
    at = seat.point(0.0, -(0.44 + 0.36 + 0.25))
    low = room.standing(table, at[0], at[1], seat.yaw_deg, spacing_m=0.25)
    wide, deep = rng.choice(((2.0, 1.4), (1.7, 1.2)))
    room.rug(decor.rug(wide, deep, "rug"), at[0], at[1], seat.yaw_deg)
    for fraction in rng.sample((0.02, 0.5, 0.98), rng.randint(1, 2)):
        cushion = seating.throw_cushion(vivid(rng, "fabric"))
        room.on(cushion, seat, yaw_deg=rng.uniform(-15, 15), at=(fraction, 0.95))
    if low is not None and rng.random() < 0.6:
        room.on(small.mug(vivid(rng)), low)


def _dining(room: RoomPlanner, style: Style) -> None:
    rng = room.rng
    area = room.room.floor.width * room.room.floor.depth
    round_top = rng.random() < 0.5
    width, depth = (0.9, 0.9) if round_top else ((1.4, 0.8) if area > 14 else (1.1, 0.7))
    table = storage.dining_table(width, depth, round_top, style.wood)
    spot = room.anywhere(table, near_middle=True) if area > 9 else room.against_wall(table)
    if spot is None:
        return
    model = seating.chair(style.chair_style, style.dark_wood if style.chair_style < 2 else style.metal, _seat(style))
    # A chair's front is -y: the one on the table's -y side is turned round to face it.
    reach_x, reach_y = width / 2 + 0.08, depth / 2 + 0.08
    places = [(0.0, -reach_y, 180.0), (0.0, reach_y, 0.0)]
    if width > 1.2:
        places = [(i * width / 4, j * reach_y, 90.0 + j * -90.0) for i in (-1, 1) for j in (-1, 1)]
    if area > 9:
        places += [(reach_x, 0.0, -90.0), (-reach_x, 0.0, 90.0)]
    chairs: list[Placed] = []
    for x, y, turn in places:
        px, py = spot.point(x, y)
        yaw = round((spot.yaw_deg + turn + rng.uniform(-8, 8)) % 360.0, 1)
        chair = room.standing(model, px, py, yaw, spacing_m=0.02, may_touch=[spot, *chairs] if round_top else [spot])
        if chair is not None:
            chairs.append(chair)
        if len(chairs) == 4:
            break
    if not chairs:
        room.remove(spot)
        return
    room.on(small.bowl(vivid(rng)), spot)


def _seat(style: Style) -> Surface:
    return style.wood if style.chair_style == 0 else style.second_fabric


def kitchen(room: RoomPlanner, style: Style) -> None:
    """A run of units along the longest free wall, a fridge, wall cabinets, a table if there is room."""
    rng = room.rng
    side = max(SIDES, key=lambda side: _run_length(room, side) + 0.3 * rng.random())
    fridge = wet_rooms.refrigerator(Surface(rng.choice(("white", "silver", "gray"))))
    start, end = _kitchen_fridge(room, side, fridge)
    units: list[Model] = [
        wet_rooms.kitchen_sink(style.kitchen, style.worktop),
        wet_rooms.stove(Surface(rng.choice(("white", "silver")))),
    ]
    spare = min(end - start, 3.2) - 1.41
    while spare >= 0.35:
        width = round(min(spare, 1.2), 2)
        units.insert(rng.randint(0, len(units)), wet_rooms.counter(width, style.kitchen, style.worktop))
        spare -= width + 0.003
    at = start
    for unit in units:
        width = unit.size[0]
        spot = room.against_wall(unit, [side], center=at + width / 2, spacing_m=0.0)
        at += width + 0.003
        if spot is not None and unit.category == "counter":
            cabinet = storage.wall_cabinet(width, style.kitchen, style.kitchen)
            room.hung(cabinet, 1.45, [side], center=_along(spot), margin_m=0.0)
    if not any(item.model is fridge for item in room.placed):
        room.against_wall(fridge, corner=True) or room.against_wall(fridge)
    if room.room.floor.width * room.room.floor.depth > 6:
        _dining(room, style)
    room.against_wall(seating.stool(style.wood, style.metal))
    for base in room.placed[:]:
        if base.model.category == "counter" and rng.random() < 0.6:
            room.on(rng.choice((small.mug, small.bowl))(vivid(rng)), base)
    _pictures(room, style, 1)


def _kitchen_fridge(room: RoomPlanner, side: Side, fridge: Model) -> tuple[float, float]:
    """Put the fridge at an end of the run if there is room beside sink and stove; the rest of the run."""
    runs = room.free_runs(side, 0.7)
    start, end = (runs[0][0] + 0.03, runs[0][1] - 0.03) if runs else (0.0, 0.0)
    if end - start < 2.05:
        return start, end
    for first in room.rng.sample((True, False), 2):
        center = start + 0.3 if first else end - 0.3
        if room.against_wall(fridge, [side], center=center, spacing_m=0.0) is not None:
            return (start + 0.605, end) if first else (start, end - 0.605)
    return start, end


def _run_length(room: RoomPlanner, side: Side) -> float:
    runs = room.free_runs(side, 0.7)
    return runs[0][1] - runs[0][0] if runs else 0.0


def bathroom(room: RoomPlanner, style: Style) -> None:
    """Toilet, washbasin with mirror, tub or shower, towels."""
    rng = room.rng
    floor = room.room.floor
    tub = wet_rooms.bathtub(1.5 if min(floor.width, floor.depth) < 2.2 else 1.7)
    large = floor.width * floor.depth > 7.5
    if large or rng.random() < 0.5:
        if room.against_wall(tub, corner=True) is None or large:
            _shower(room)
    elif not _shower(room):
        room.against_wall(tub, corner=True)
    room.against_wall(wet_rooms.toilet(), front_m=0.2)
    basin = room.against_wall(wet_rooms.washbasin(style.lacquer), front_m=0.3)
    if basin is not None and basin.side is not None:
        room.hung(wet_rooms.mirror(0.6, 0.75), 1.15, [basin.side], center=_along(basin), margin_m=0.0)
    for _ in range(2 if large else 1):
        room.hung(wet_rooms.towel(vivid(rng, "fabric")), 0.95)
    if rng.random() < 0.7:
        room.against_wall(wet_rooms.laundry_basket(Surface("beige", "wicker")), corner=True)
    if large:
        room.against_wall(storage.wardrobe(0.6, style.lacquer, style.lacquer), corner=True)
        room.against_wall(storage.chest_of_drawers(style.lacquer, style.lacquer, 0.7))
        room.against_wall(seating.stool(style.wood, style.metal))


def _shower(room: RoomPlanner) -> bool:
    # Its glass stands at the right and in front, so that it belongs in a corner; either corner of a wall will do.
    return room.against_wall(wet_rooms.shower(), corner=True) is not None


def bedroom(room: RoomPlanner, style: Style) -> None:
    """A bed with nightstands, a wardrobe, drawers, and a desk where the flat has no study."""
    rng = room.rng
    floor = room.room.floor
    area = floor.width * floor.depth
    widths = (1.6, 1.4, 1.2, 0.95) if area > 9.5 else (1.4, 1.2, 0.95)
    sides = sorted(OPPOSITE, key=lambda side: any(w.side == side for w in room.room.windows) + 0.5 * rng.random())
    rest = None
    for width in widths:
        rest = room.against_wall(seating.bed(width, style.wood, style.linen, style.second_fabric), sides)
        if rest is not None:
            break
    if rest is not None:
        _bedside(room, style, rest)
    if room.with_desk:
        workplace(room, style)
    wardrobe = storage.wardrobe(1.2 if area < 11 else 1.6, style.lacquer, style.lacquer)
    room.against_wall(wardrobe, corner=True, front_m=0.4) or room.against_wall(
        storage.wardrobe(0.9, style.lacquer, style.lacquer), corner=True, front_m=0.3
    )
    drawers = room.against_wall(storage.chest_of_drawers(style.wood, style.lacquer), front_m=0.3)
    if drawers is not None and rng.random() < 0.6:
        room.on(small.vase(vivid(rng), rng.randrange(3)), drawers)
    if area > 11:
        room.against_wall(storage.bookshelf(0.8, 1.48, style.dark_wood), front_m=0.3)
        room.against_wall(seating.armchair(style.upholstery, style.dark_wood), corner=True)
        room.against_wall(_large_plant(room), corner=True)
    _pictures(room, style, 2)


def _bedside(room: RoomPlanner, style: Style, rest: Placed) -> None:
    rng = room.rng
    half = rest.model.size[0] / 2
    table = storage.nightstand(style.wood, style.lacquer)
    shift = 1.01 - 0.19
    lamp = decor.table_lamp(style.metal, Surface(rng.choice(("cream", "white", "yellow"))))
    for k, side in enumerate(rng.sample((-1, 1), 2)):
        x, y = rest.point(side * (half + 0.22 + 0.03), shift)
        stand = room.standing(table, x, y, rest.yaw_deg, spacing_m=0.015)
        if stand is None:
            continue
        if k == 0 or rng.random() < 0.5:
            room.on(lamp, stand, yaw_deg=0.0, at=(0.0 if side < 0 else 1.0, 0.9))
    cushion = seating.throw_cushion(vivid(rng, "fabric"))
    room.on(cushion, rest, at=(rng.random(), 0.9))
    x, y = rest.point(0.0, -0.6)
    room.rug(decor.rug(half * 2 + 0.7, 1.3, "rug_two"), x, y, rest.yaw_deg)


def study(room: RoomPlanner, style: Style) -> None:
    """Desk, office chair, shelves, something to exercise with."""
    rng = room.rng
    workplace(room, style)
    room.against_wall(storage.bookshelf(0.9, 1.84, style.dark_wood), front_m=0.3)
    area = room.room.floor.width * room.room.floor.depth
    if area > 7:
        room.against_wall(storage.sideboard(1.2, style.dark_wood, style.lacquer), front_m=0.3)
        room.against_wall(decor.dumbbell_rack(), front_m=0.3)
    if area > 10:
        room.against_wall(seating.armchair(style.upholstery, style.wood), corner=True)
    room.against_wall(decor.floor_lamp(Surface("cream")), corner=True)
    x, y = room.room.floor.center
    room.rug(decor.rug(1.5, 1.1, "rug"), x, y, rng.choice((0.0, 90.0)))
    _pictures(room, style, 2)


def workplace(room: RoomPlanner, style: Style) -> Placed | None:
    """A desk with its chair and a laptop; None if the room has no place for it."""
    rng = room.rng
    spot = None
    for width in (1.3, 1.1, 0.95):
        spot = spot or room.against_wall(storage.desk(width, style.wood, style.metal), front_m=0.5)
    if spot is None:
        return None
    chair = (
        seating.office_chair(vivid(rng, "fabric"))
        if rng.random() < 0.75
        else seating.chair(style.chair_style, style.dark_wood, _seat(style))
    )
    laptop = small.laptop(Surface(rng.choice(("silver", "gray", "black"))))
    room.on(laptop, spot, yaw_deg=rng.uniform(-10, 10), at=(0.35, 0.8))
    room.on(decor.table_lamp(style.metal, vivid(rng)), spot, at=(0.98, 0.9))
    for aside, out in ((-0.12, 0.45), (0.0, 0.45), (-0.2, 0.32), (-0.05, 0.32)):
        x, y = spot.point(aside, -out)
        yaw = round(spot.yaw_deg + 180 + rng.uniform(-15, 15), 1) % 360
        if room.standing(chair, x, y, yaw, may_touch=[spot], spacing_m=0.02) is not None:
            break
    return spot


def hall(room: RoomPlanner, style: Style) -> None:
    """A bench, coats, a mirror, a runner."""
    rng = room.rng
    floor = room.room.floor
    short, long = sorted((floor.width, floor.depth))
    bench = room.against_wall(seating.bench(style.wood, style.second_fabric))
    coats = tuple(Surface(color, "fabric") for color in rng.sample(("blue", "gray", "red", "beige"), 3))
    rack = decor.coat_rack(style.wood, coats)
    over_bench = [bench.side] if bench is not None and bench.side is not None else []
    room.hung(rack, 0.92, over_bench) or room.hung(rack, 0.92)
    room.hung(wet_rooms.mirror(0.5, 1.1), 0.7)
    runner = decor.rug(round(min(2.2, 0.6 * long), 2), round(min(1.0, 0.55 * short), 2), "rug_two")
    room.rug(runner, *floor.center, 0.0 if floor.width > floor.depth else 90.0)
    if short > 1.9:
        room.against_wall(storage.sideboard(1.0, style.wood, style.lacquer))
        room.against_wall(_large_plant(room), corner=True)
    _pictures(room, style, 2)


def _large_plant(room: RoomPlanner) -> Model:
    rng = room.rng
    pot = rng.choice((Surface("white"), Surface("terracotta"), Surface("gray"), Surface("beige", "wicker")))
    return small.house_plant(pot, rng.choice((0.8, 1.0, 1.2)), rng.randrange(3))


def _pictures(room: RoomPlanner, style: Style, count: int) -> None:
    rng = room.rng
    for _ in range(count):
        art = rng.choice(_ART)
        width, height = rng.choice(((0.9, 0.62), (0.66, 0.46))) if "landscape" in art else (0.48, 0.7)
        frame = rng.choice((style.dark_wood, Surface("black"), Surface("white")))
        room.hung(decor.picture(width, height, art, frame), round(1.72 - height / 2 - 0.1, 2), margin_m=0.15)


FURNISH: dict[str, Callable[[RoomPlanner, Style], None]] = {
    "living_room": living_room,
    "kitchen": kitchen,
    "bathroom": bathroom,
    "bedroom": bedroom,
    "study": study,
    "hall": hall,
}
