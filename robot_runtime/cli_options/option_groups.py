"""Groups of command-line options: frozen dataclasses whose fields become the options of a command.

typer knows no groups: every option is a parameter of the command's function. :func:`grouped_options` makes that
function, so that commands with the same options share one class and its methods::

    @dataclass(frozen=True)
    class WorkerOptions:
        workers: Annotated[int | None, typer.Option(min=1, help="Processes.")] = None

    @grouped_options
    def score(*, logs: Logs, parallel: WorkerOptions) -> None: ...   # robot-runtime score LOGS --workers 4
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints


def grouped_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a function for typer that has the fields of the command's groups as parameters.

    Args:
        command: a function; each parameter whose type is a dataclass is a group. Fields are options or arguments as
            typer's parameters are: ``Annotated`` types, with a default unless they are required.

    Returns:
        A function of keyword arguments with the name and docstring of ``command``, which calls it with the groups.

    Raises:
        TypeError: two groups or parameters have the same option.
    """
    types = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: kind for name, kind in types.items() if isinstance(kind, type) and is_dataclass(kind)
    }
    parameters: list[Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters.extend(_parameters(groups[parameter.name]))
        else:
            kind = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=types[parameter.name], kind=kind))
    names = [parameter.name for parameter in parameters]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TypeError(f"{command.__qualname__}: repeated options: {', '.join(repeated)}")

    @wraps(command)
    def expanded(**values: Any) -> None:
        built = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **built)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _parameters(group: type[Any]) -> Iterator[Parameter]:
    types = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name])
