"""Rendering of the HTML templates of all pages, which share ``base.html`` and ``style.css``."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from robot_runtime.common.clock import utc_now_iso
from robot_runtime.common.provenance import command_line
from robot_runtime.metrics.episode_metrics import SCORER_VERSION


def render(template: str, package: str = "robot_runtime.scoring", /, **context: object) -> str:
    """Render a template.

    Args:
        template: file name in the folder ``templates`` of a package, or of this one.
        package: package that has the template.
        context: variables of the template, besides those of ``base.html``.
    """
    page = environment(package).get_template(template)
    facts = {"created": utc_now_iso(), "command": command_line(), "scorer": SCORER_VERSION, "maps": {}}
    return page.render(**facts | context)


@cache
def environment(package: str) -> Environment:
    """The templates of a package and of this one."""
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("robot_runtime.scoring")])
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    own = (digest, command_on_page, path_on_page, without_folders)
    templates.filters |= {function.__name__: function for function in own}
    return templates


def digest(script: str) -> str:
    """The hash of a script, by which a page's policy lets this script run and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def command_on_page(command: str) -> str:
    """A command whose paths are without the machine's folders."""
    return " ".join(path_on_page(word) if word.startswith("/") else word for word in command.split())


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
