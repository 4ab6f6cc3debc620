"""Rendering of the HTML templates of all pages, which share ``base.html`` and ``style.css``."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from robot_runtime.common.clock import utc_now_iso
from robot_runtime.metrics.episode_metrics import SCORER_VERSION


def render(template: str, package: str = "robot_runtime.scoring", /, **context: object) -> str:
    """Render a template.

    Args:
        template: file name in the folder ``templates`` of a package, or of this one.
        package: that has the template.
        context: its variables, besides those of ``base.html``.
    """
    page = environment(package).get_template(template)
    return page.render(**{"created": utc_now_iso(), "scorer": SCORER_VERSION, "maps": {}, **context})


@cache
def environment(package: str) -> Environment:
    """The templates of a package and of this one."""
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("robot_runtime.scoring")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
