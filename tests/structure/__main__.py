"""Table of the measures of the structure, printed by ``python -m tests.structure``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.structure.measures import MEASURES


def main() -> int:
    """Print the table; with ``--check``, exit with 1 if a value is above its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"measures, by default all: {', '.join(MEASURES)}")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a value is above its limit")
    parser.add_argument("--places", action="store_true", help="list what was counted")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write values, limits and aims to this file")
    given = parser.parse_args()
    if unknown := set(given.names) - MEASURES.keys():
        parser.error(f"unknown measures: {', '.join(sorted(unknown))}")
    measured = {name: MEASURES[name].measure() for name in given.names or MEASURES}
    print(f"{'measure':74}{'value':>9}{'limit':>9}{'aim':>9}")
    for name, value in measured.items():
        row = MEASURES[name]
        print(f"{name + ': ' + row.title:74}{value.count:>9,}{row.limit:>9,}{row.aim:>9,}")
        if given.places or (given.check and value.count > row.limit):
            print(*(f"    {item}" for item in value.items), sep="\n")
    if given.json is not None:
        table = {n: {"value": v.count, "limit": MEASURES[n].limit, "aim": MEASURES[n].aim} for n, v in measured.items()}
        given.json.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    above = [name for name, value in measured.items() if value.count > MEASURES[name].limit]
    if given.check and above:
        print(f"above the limit: {', '.join(above)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
