"""``robot-runtime serve``: another program's client drives the robot; or a policy decides for robots elsewhere."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli import completion, options
from robot_runtime.errors import ConfigError

TOKEN_VARIABLE = "ROBOT_RUNTIME_TOKEN"


_HELP = """Serve episodes to ai2thor's robot client and print their scores when all were run.

Only programs that know the token can drive the robot; it is printed at the start. The server listens on this machine
alone unless --host says otherwise. The protocol is not encrypted: beyond a network that you trust, use a tunnel.

Examples:

    robot-runtime serve robothor --task objectnav_robothor2021

    robot-runtime serve robothor --robot my_robot.yaml --scene scenes/flat --episodes val.json.gz --host 192.168.1.5
"""

_POLICY_HELP = """Serve a policy to robots elsewhere; they `run --policy ws://HOST:PORT`.

It listens on this machine alone unless --host says otherwise; then clients must show a token, which is printed at the
start. Without --certificate nothing is encrypted: beyond a network that you trust, give one, or use a tunnel.

Examples:

    robot-runtime serve policy my_policy.zip

    robot-runtime serve policy my_policy.zip --host 0.0.0.0 --certificate server.pem --key server.key

    robot-runtime serve policy habitat:mine.py:Agent --agent-python venv --task objectnav_hm3d2022 --host 10.0.0.5
"""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["serve"].command("robothor", help=_HELP)(robothor)
    groups["serve"].command("policy", help=_POLICY_HELP)(policy)


def robothor(
    robot: options.Robot = "sim",
    camera: options.Camera = None,
    camera_arg: options.CameraArg = None,
    localizer: options.Localizer = None,
    referee: options.Referee = None,
    scene: options.Scene = "apartment",
    task: Annotated[
        str, typer.Option(help="Task preset (launch/tasks) or YAML file.", autocompletion=completion.tasks)
    ] = "objectnav_robothor2021",
    episodes: options.Episodes = None,
    count: options.Count = None,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes and simulated noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the logs. Default: logs/TIME-CLIENT-TASK.")] = None,
    overwrite: options.Overwrite = False,
    real_time: options.RealTime = False,
    localization_patience: options.LocalizationPatience = 30.0,
    host: options.Host = "127.0.0.1",
    port: options.Port = 9200,
    token: Annotated[
        str | None,
        typer.Option(envvar=TOKEN_VARIABLE, help="What clients must show. Default: a new one, printed."),
    ] = None,
    client_timeout: Annotated[
        float, typer.Option(min=1, max=86400, help="Seconds of silence after which a client has lost its episode.")
    ] = 60.0,
) -> None:
    from robot_runtime.cli.run import choose_episodes, log_folder
    from robot_runtime.cli.score import print_scores
    from robot_runtime.common.console import console, error_console
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot, read_robot_file
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.servers.robothor import AGENT_NAME, RobothorServer
    from robot_runtime.tasks.task import load_task

    password = token or secrets.token_urlsafe(16)
    check_token(password, host)
    chosen_task = load_task(task)
    chosen_scene = load_scene(find_scene(scene))
    chosen = choose_episodes(episodes, count, seed, chosen_task, chosen_scene, None)
    folder = log_folder(out, overwrite, AGENT_NAME, chosen_task.name)
    parts = DeviceOverrides(camera, localizer, referee, tuple(camera_arg or ()))
    _, robot_file = read_robot_file(robot, parts)

    with ExitStack() as stack:
        connected = stack.enter_context(
            load_robot(robot, RobotContext.of(chosen_task, chosen_scene, chosen, seed, real_time), parts)
        )
        recorder = Recorder(folder)
        stack.callback(recorder.close)
        stack.callback(error_console.print, f"logs: {folder}", soft_wrap=True)
        server = stack.enter_context(
            RobothorServer(
                connected,
                chosen_task,
                chosen_scene,
                chosen,
                password,
                (host, port),
                (recorder,),
                client_timeout_s=client_timeout,
                localization_patience_s=localization_patience,
                seed=seed,
                robot_config=asdict(robot_file),
                dataset=str(episodes or ""),
                on_refused=lambda error: error_console.print(f"refused: {error.message}", soft_wrap=True, markup=False),
            )
        )
        shown = password if token is None else "TOKEN"
        console.print(f"serving {len(chosen)} episodes of {chosen_task.name} on port {server.port}", soft_wrap=True)
        client = f'Controller(host="robot:{shown}@{reached_as(host)}", port={server.port})'
        console.print(f"client: {client}", soft_wrap=True)
        server.serve()
    print_scores([folder], console)


def policy(
    name: Annotated[str, typer.Argument(metavar="POLICY", help="What `run` takes as --policy or --agent.")],
    task: Annotated[
        str | None,
        typer.Option(
            help="Task preset or YAML file, for clients that do not say theirs. Default: as of `run`.",
            autocompletion=completion.tasks,
        ),
    ] = None,
    agent_arg: options.AgentArg = None,
    agent_python: options.AgentPython = None,
    agent_timeout: options.AgentTimeout = None,
    seed: Annotated[int, typer.Option(min=0, help="Of clients that do not say theirs.")] = 0,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar=TOKEN_VARIABLE, help="What clients must show. Default: none here, else a new one."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file to show to clients, which then write wss:// for ws://.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file with its private key.")] = None,
) -> None:
    from robot_runtime.cli.run import DEFAULT_TASK, agent_arguments, choose_policy
    from robot_runtime.common.console import console, error_console
    from robot_runtime.policies.remote.encryption import server_context
    from robot_runtime.servers.policy import PolicyServer
    from robot_runtime.tasks.task import load_task

    if (certificate is None) != (key is None):
        raise ConfigError("--certificate and --key belong together", "give both, or neither")
    encryption = server_context(certificate, key) if certificate is not None and key is not None else None
    password = token or (None if is_local(host) else secrets.token_urlsafe(16))
    if password is not None:
        check_token(password, host)
    with ExitStack() as stack:
        chosen = choose_policy(name, None, agent_python, agent_timeout, agent_arguments(agent_arg or []))
        stack.callback(chosen.close)
        own_task = chosen.task if task is None else None
        server = stack.enter_context(
            PolicyServer(
                chosen,
                own_task or load_task(task or DEFAULT_TASK),
                (host, port),
                password,
                seed,
                on_error=lambda message: error_console.print(message, soft_wrap=True, markup=False),
                encryption=encryption,
            )
        )
        url = f"{'ws' if encryption is None else 'wss'}://{reached_as(host)}:{server.port}"
        console.print(f"serving {chosen.name}: robot-runtime run --policy {url}", soft_wrap=True)
        if password is not None and token is None:
            console.print(f"on the robot: export {TOKEN_VARIABLE}={password}", soft_wrap=True)
        while server.wait(1.0):
            pass


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def reached_as(host: str) -> str:
    """What clients call the address that a server listens on: this computer's name where it listens on all of them."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "") else host


def check_token(token: str, host: str) -> None:
    """Whether a token can be written into a URL, and is long enough for where it is needed. Raises ``ConfigError``."""
    if not (token.isascii() and token.replace("-", "").replace("_", "").isalnum()):
        raise ConfigError("the token has characters that a URL cannot carry", "use letters, digits, - and _")
    if len(token) < 16 and not is_local(host):
        raise ConfigError(
            f"a token of {len(token)} characters is too short for the network that {host!r} is in",
            "use 16 or more, or leave it out and get one",
        )
