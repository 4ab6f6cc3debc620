"""Rendering of the HTML templates of all pages, which share ``base.html`` and ``style.css``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from robot_runtime.common.clock import utc_now_iso
from robot_runtime.metrics.episode_metrics import SCORER_VERSION


def render(template: str, package: str = "robot_runtime.scoring", /, **context: object) -> str:
    """Render a template.

    Args:
        template: file name in the folder ``templates`` of a package, or of this one.
        package: package that has the template.
        context: variables of the template, besides those of ``base.html``.
    """
    page = environment(package).get_template(template)
    return page.render(**{"created": utc_now_iso(), "scorer": SCORER_VERSION, "maps": {}, **context})


@cache
def environment(package: str) -> Environment:
    """The templates of a package and of this one."""
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("robot_runtime.scoring")])
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.filters |= {"path_on_page": path_on_page, "without_folders": without_folders}
    return templates


def path_on_page(path: Path | str) -> str:
    """A path without the machine's folders: from the working folder, or else file and folder only."""
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return "/".join(Path(path).resolve().parts[1:][-2:])


def without_folders(text: str, path: Path | str) -> str:
    """A text about a file, with its path as :func:`path_on_page` gives it, and without its folder elsewhere."""
    shown = text.replace(str(path), path_on_page(path))
    folder = str(Path(path).parent)
    return shown.replace(f"{folder}/", "") if Path(path).is_absolute() else shown
