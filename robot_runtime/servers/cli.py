"""``robot-runtime serve``: the robot for clients of other programs, or a policy for robots elsewhere."""

import secrets
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext
from typing import Annotated

import typer

from robot_runtime.cli_options import completion, options
from robot_runtime.cli_options.addresses import check_token, is_local, reached_as
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError

TOKEN_VARIABLE = "ROBOT_RUNTIME_TOKEN"

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")]

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


@dataclass(frozen=True)
class ServedLogOptions(options.LogOptions):
    """Folder of the logs of served episodes."""

    out: Annotated[Path | None, typer.Option(help="Folder for the logs. Default: logs/TIME-CLIENT-TASK.")] = None


@dataclass(frozen=True)
class ClientOptions:
    """Access of clients to the robot."""

    host: Host = "127.0.0.1"
    port: Port = 9200
    token: Annotated[
        str | None, typer.Option(envvar=TOKEN_VARIABLE, help="What clients must show. Default: a new one, printed.")
    ] = None
    client_timeout_s: Annotated[
        float, typer.Option(min=1, max=86400, help="Seconds of silence after which a client has lost its episode.")
    ] = 60.0
    takeover: Annotated[
        bool, typer.Option("--takeover", help="A client that begins an episode ends the one that runs.")
    ] = False


@dataclass(frozen=True)
class EncryptionOptions:
    """Certificate of an encrypted server."""

    certificate: Annotated[
        Path | None, typer.Option(help="PEM file to show to clients, which then write wss:// for ws://.")
    ] = None
    key: Annotated[Path | None, typer.Option(help="PEM file with its private key.")] = None

    def context(self) -> SSLContext | None:
        """The server's encryption; None without. Raises ``ConfigError``."""
        from robot_runtime.policies.remote.encryption import server_context

        if (self.certificate is None) != (self.key is None):
            raise ConfigError("--certificate and --key belong together", "give both, or neither")
        return None if self.certificate is None or self.key is None else server_context(self.certificate, self.key)


@grouped_options
def robothor(
    *,
    robot: options.RobotOptions,
    scene: options.Scene = "apartment",
    task: options.Task = "objectnav_robothor2021",
    episodes: options.EpisodeOptions,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes and simulated noise.")] = 0,
    output: ServedLogOptions,
    real_time: options.RealTime = False,
    localization_patience_s: options.LocalizationPatience = 30.0,
    client: ClientOptions,
) -> None:
    """Run the command; its help is ``_HELP``."""
    from robot_runtime.common.console import say, tell
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.scoring.cli.score import print_scores
    from robot_runtime.servers.robothor import AGENT_NAME, RobothorServer
    from robot_runtime.tasks.task import load_task

    token = client.token or secrets.token_urlsafe(16)
    check_token(token, client.host)
    run_in, place = load_task(task), load_scene(find_scene(scene))
    chosen = episodes.choose(seed, run_in, place)
    folder = output.folder(AGENT_NAME, run_in.name)
    config, context = robot.config(), RobotContext.of(run_in, place, chosen, seed, real_time)
    with (
        robot.recorded(context, folder) as (connected, recorder),
        RobothorServer(
            connected,
            run_in,
            place,
            chosen,
            token,
            (client.host, client.port),
            (recorder,),
            client_timeout_s=client.client_timeout_s,
            localization_patience_s=localization_patience_s,
            seed=seed,
            robot_config=config,
            dataset=episodes.dataset,
            takeover=client.takeover,
            on_refused=lambda error: tell(f"refused: {error.message}"),
        ) as server,
    ):
        shown = token if client.token is None else "TOKEN"
        say(f"serving {len(chosen)} episodes of {run_in.name} on port {server.port}")
        # With the process in its name, a second program is another client.
        user = "robot-{os.getpid()}"
        controller = f'Controller(host=f"{user}:{shown}@{reached_as(client.host)}", port={server.port})'
        say(f"client: {controller}")
        server.serve()
    print_scores([folder])


@grouped_options
def policy(
    *,
    name: Annotated[str, typer.Argument(metavar="POLICY", help="What `run` takes as --policy or --agent.")],
    task: Annotated[
        str | None,
        typer.Option(
            help="Task preset or YAML file, for clients that do not say theirs. Default: as of `run`.",
            autocompletion=completion.tasks,
        ),
    ] = None,
    agent: options.AgentOptions,
    seed: Annotated[int, typer.Option(min=0, help="Of clients that do not say theirs.")] = 0,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar=TOKEN_VARIABLE, help="What clients must show. Default: none here, else a new one."),
    ] = None,
    encryption: EncryptionOptions,
) -> None:
    """Run the command; its help is ``_POLICY_HELP``."""
    from robot_runtime.common.console import say, tell
    from robot_runtime.servers.policy import PolicyServer
    from robot_runtime.tasks.task import load_task

    ssl_context = encryption.context()
    required = token or (None if is_local(host) else secrets.token_urlsafe(16))
    if required is not None:
        check_token(required, host)
    with closing(agent.load(name)) as loaded:
        own_task = loaded.task if task is None else None
        run_in = own_task or load_task(task or options.DEFAULT_TASK)
        with PolicyServer(
            loaded, run_in, (host, port), required, seed, on_error=tell, encryption=ssl_context
        ) as server:
            url = f"{'ws' if ssl_context is None else 'wss'}://{reached_as(host)}:{server.port}"
            say(f"serving {loaded.name}: robot-runtime run --policy {url}")
            if required is not None and token is None:
                say(f"on the robot: export {TOKEN_VARIABLE}={required}")
            while server.wait(1.0):
                pass
