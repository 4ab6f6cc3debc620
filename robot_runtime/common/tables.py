"""Tables of the terminal: fitted to narrow ones, and of names with values."""

from collections.abc import Mapping

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_ANY_WIDTH = 10_000


def fitted(table: Table, console: Console, options: ConsoleOptions) -> Table:
    """The table, changed to fit the options' width without cutting a word."""
    free = options.update(width=_ANY_WIDTH, max_width=_ANY_WIDTH)
    whole = Measurement.get(console, free, table)
    if whole.maximum <= options.max_width or not table.columns:
        return table
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    cells = [[column.header, *column.cells] if table.show_header else list(column.cells) for column in table.columns]
    sizes = [[Measurement.get(console, free, cell) for cell in column] for column in cells]
    least = [max((size.minimum for size in column), default=0) for column in sizes]
    widest = sum(max((size.maximum for size in column), default=0) for column in sizes)
    left = options.max_width - sum(least) - (Measurement.get(console, free, table).maximum - widest)
    if left < 0:
        return _stacked(table) if table.show_header else table
    wanted = [max(size.maximum for size in column) - low for column, low in zip(sizes, least, strict=True)]
    for rest, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        given = min(wanted[index], left // (len(wanted) - rest))
        table.columns[index].width = least[index] + given
        left -= given
    return table


def _stacked(table: Table) -> Table:
    """The rows of a table below each other, each as lines of heading and value."""
    lines = Table(box=None, show_header=False, pad_edge=False, title=table.title, title_justify="left")
    lines.add_column(overflow="fold")
    lines.add_column(overflow="fold")
    headings = [column.header for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        if lines.row_count:
            lines.add_row()
        for heading, cell in zip(headings, row, strict=True):
            lines.add_row(heading, cell)
    return lines


def facts_table(facts: Mapping[str, object]) -> Table:
    """A row per fact with its name; lists and counts (name -> number) are separated by commas."""
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        if isinstance(value, Mapping):
            value = [f"{key} {number}" for key, number in value.items()]
        table.add_row(name, Text((", ".join(map(str, value)) if isinstance(value, list) else str(value)) or "-"))
    return table
