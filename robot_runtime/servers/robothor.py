"""Server of the RoboTHOR robot protocol, for the unmodified ``robot_controller.Controller`` of ai2thor 2.7.2.

::

    POST /step   JSON      {"action": "MoveAhead", "sequenceId": 0, "agentId": 0, ...}
                 msgpack   {"image": [uint8 H*W*3 RGB], "image_depth": [float64 H*W, meters],
                            "metadata": {"sequenceId": 0, "agents": [{...}]}}

The client calls it for every action; its own ``reset`` sends nothing. Three actions therefore begin an episode:

==================  ==================================================================================================
``Initialize``,     the next episode that has not been run. Arguments of the simulator that the task knows
``Reset``           (``gridSize``, ``rotateStepDegrees``, ``fieldOfView``, ``sceneName``) must agree with it; others
                    have no meaning for a robot and are listed in ``robotRuntime.ignored``.
``TeleportFull``    the next one that starts at that pose. The challenge's own loop teleports to each episode's start,
                    and works unchanged.
==================  ==================================================================================================

A client is known by its user name and address. While its episode runs, no client can begin another one, unless the
server has ``takeover``.

In an episode there are the task's actions by the challenge's names (``MoveAhead`` ... ``Stop``, AllenAct's ``End``) and
``Pass``, a request for the last event once more. Poses are in THOR's convention and come from the policy's localizer.

An action that did not reach its goal has ``lastActionSuccess`` false. A refused request moves nothing, and also has
``errorCode`` ``InvalidAction``, the only code at which this client raises. ``errorMessage`` is the reason, and
``robotRuntime.error`` the class of the error.

This client leaves ``sequenceId`` at 0. Clients that count from 1 can repeat requests
(``robot_runtime.servers.request_queue``). Requests are JSON; msgpack is only written here, never read.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from typing_extensions import override

from robot_runtime.actions.discrete import ALLENACT_ROBOTHOR, ROBOTHOR, Action
from robot_runtime.common.closing import Closing
from robot_runtime.common.geometry import (
    SE2,
    thor_horizon_to_tilt,
    thor_rotation_to_yaw,
    thor_to_ros_position,
    wrap_angle,
)
from robot_runtime.env import MAP_FRAME, Env
from robot_runtime.errors import RuntimeFault, UnknownAction
from robot_runtime.hal import BaseState, Robot
from robot_runtime.localization.pose_monitor import PATIENCE_S
from robot_runtime.records import EndReason, Subscriber
from robot_runtime.scenes.scene import Scene
from robot_runtime.servers import robothor_messages as messages
from robot_runtime.servers.request_queue import Answer, Call, Refused, RequestQueue
from robot_runtime.servers.request_server import RequestServer
from robot_runtime.servers.robothor_messages import Request, check_size, number, parse_request
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task

AGENT_NAME = "robothor-client"
"""Agent in logs and tables, because the deciding program is unknown here."""

PORT = 9200
"""Port of ai2thor's own mock server."""

BEGINS = ("Initialize", "Reset", "TeleportFull")
PASS = "Pass"

START_TOLERANCE_M = 0.05
START_TOLERANCE_RAD = math.radians(2.0)
"""Tolerances between ``TeleportFull`` and an episode's start, for rounding; episodes are much farther apart."""

LINGER_S = 2.0
"""Seconds that the server runs after the last episode, for a client whose last answer was lost."""


class ClientGone(RuntimeFault):
    """The client disconnected during an action, and the robot was stopped."""


class RobothorServer(Subscriber, Closing):
    """Server of episodes to one client after the other; a context.

    Args:
        robot: connected; the caller closes it. Used only in the thread that calls :meth:`serve`.
        task: task of the episodes.
        scene: scene in which the robot is.
        episodes: episodes in the order in which they are offered.
        token: token that every request must have.
        address: host and port to listen on; port 0 for any free one.
        subscribers: subscribers of the environment.
        client_timeout_s: time without requests after which a client loses its episode.
        seed: seed of the environment.
        robot_config: robot configuration of the environment.
        dataset: dataset of the environment.
        on_refused: called with the error of every refused request.
        localization_patience_s: longest pause of localization in the environment.
        takeover: whether a client can begin an episode while another one runs; that one ends as interrupted.

    Raises:
        ConfigError: as :class:`Env`, or the address is not available.
    """

    def __init__(
        self,
        robot: Robot,
        task: Task,
        scene: Scene,
        episodes: Sequence[Episode],
        token: str,
        address: tuple[str, int] = ("127.0.0.1", PORT),
        subscribers: Sequence[Subscriber] = (),
        client_timeout_s: float = 60.0,
        seed: int = 0,
        robot_config: Mapping[str, Any] | None = None,
        dataset: str = "",
        on_refused: Callable[[RuntimeFault], None] = lambda _: None,
        localization_patience_s: float = PATIENCE_S,
        takeover: bool = False,
    ) -> None:
        self.env = Env(
            robot,
            task,
            scene,
            (*subscribers, self),
            seed=seed,
            robot_config=robot_config,
            dataset=dataset,
            localization_patience_s=localization_patience_s,
        )
        self._task = task
        self._episodes = tuple(episodes)
        self._remaining = dict(enumerate(self._episodes))
        self._index = -1
        self._client_timeout_s = client_timeout_s
        self._on_refused = on_refused
        self._seed = seed
        self._odom_to_map = SE2()
        self._call: Call | None = None
        self._queue = RequestQueue(takeover)
        self._server = RequestServer(address, token, self._handle, self._refusal)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.port

    def close(self) -> None:
        """End the running episode, refuse pending requests, and stop the server. The robot stays connected."""
        self.env.close()
        ended = Refused("the server is ending", "start it again", HTTPStatus.SERVICE_UNAVAILABLE)
        self._queue.close(Answer(ended.status, self._refusal(ended)))
        self._server.close()

    def stop(self) -> None:
        """Let :meth:`serve` return after the current request; for any thread."""
        self._queue.stop()

    def serve(self) -> None:
        """Answer requests until every episode was run, or until :meth:`stop`; for the robot's thread."""
        while True:
            runs = not self.env.episode_over
            call = self._queue.next(self._client_timeout_s if runs or self._remaining else LINGER_S)
            if call is not None:
                self._queue.reply(call, self._carry_out(call), owns=not self.env.episode_over)
            elif self._queue.stopped:
                return
            elif runs:
                silent = f"the client was silent for {self._client_timeout_s:.0f} s"
                # First, so that subscribers to the episode's end find the robot free.
                self._queue.release()
                self.env.interrupt(EndReason.INTERRUPTED, silent)
            elif not self._remaining:
                return

    @override
    def on_base_state(self, state: BaseState) -> None:
        if self._call is not None and self._call.cut.is_set():
            self._interrupt_gone()

    # --- a connection's thread --------------------------------------------------------------------------------------

    def _handle(self, client: str, body: bytes, is_gone: Callable[[], bool]) -> Answer | None:
        request = parse_request(body)
        call = Call(client, request.sequence, body, request, request.action in BEGINS)
        return self._queue.ask(call, is_gone)

    def _refusal(self, error: RuntimeFault, action: str = "", sequence: int = 0) -> bytes:
        event = messages.event(self._task.camera, action, False, "InvalidAction", str(error))
        event["robotRuntime"] = {"error": type(error).__name__}
        return messages.pack(sequence, event, self._task.camera, {})

    # --- the robot's thread -----------------------------------------------------------------------------------------

    def _carry_out(self, call: Call) -> Answer:
        request: Request = call.request
        self._call = call
        try:
            ignored = self._act(request)
            if call.cut.is_set():
                self._interrupt_gone()
            return Answer(HTTPStatus.OK, self._observed(request, ignored))
        except RuntimeFault as error:
            self._on_refused(error)
            status = error.status if isinstance(error, Refused) else HTTPStatus.INTERNAL_SERVER_ERROR
            return Answer(status, self._refusal(error, request.action, request.sequence))
        finally:
            self._call = None

    def _interrupt_gone(self) -> None:
        gone = "the client's connection was lost while the robot acted"
        self.env.interrupt(EndReason.INTERRUPTED, gone)
        raise ClientGone(gone, "begin the next episode; a client that counts sequenceId from 1 can repeat requests")

    def _act(self, request: Request) -> list[str]:
        """Carry out a request, and return the names of ignored arguments."""
        if request.action in BEGINS:
            return self._begin(request)
        if self.env.episode_over:
            raise Refused(
                "no episode is running: it is over or none was begun",
                'begin the next one: controller.step("Initialize")',
                HTTPStatus.CONFLICT,
            )
        if request.action != PASS:
            action = self._action(request.action)
            self._check_arguments(request, action)
            self.env.step(action)
        return []

    def _action(self, word: str) -> Action:
        dialect = ALLENACT_ROBOTHOR if word in ALLENACT_ROBOTHOR.spellings else ROBOTHOR
        try:
            action = dialect.parse(word)
        except UnknownAction as error:
            raise Refused(error.message, f"{error.remedy}, {', '.join((PASS, *BEGINS))}") from error
        if action not in self._task.actions:
            known = ", ".join(ROBOTHOR.encode(known)[1] for known in self._task.actions if known in ROBOTHOR.actions)
            raise Refused(f"task {self._task.name!r} has no action {word!r}", f"use one of: {known}")
        return action

    def _check_arguments(self, request: Request, action: Action) -> None:
        """Raise ``Refused`` for a motion of another size than the task's, or with unknown arguments."""
        sizes = self._task.magnitudes
        size = {
            Action.MOVE_FORWARD: ("moveMagnitude", sizes.forward_m),
            Action.TURN_LEFT: ("degrees", sizes.turn_deg),
            Action.TURN_RIGHT: ("degrees", sizes.turn_deg),
            Action.LOOK_UP: ("degrees", sizes.tilt_deg),
            Action.LOOK_DOWN: ("degrees", sizes.tilt_deg),
        }.get(action)
        for name, value in request.arguments.items():
            if size is None or name != size[0]:
                raise Refused(f"{request.action} has no argument {name[:100]!r} here", "leave it out")
            check_size(name, value, size[1], self._task)

    def _begin(self, request: Request) -> list[str]:
        """Begin an episode, and return the names of ignored arguments."""
        if not self._remaining:
            raise Refused(
                f"all {len(self._episodes)} episodes were run", "start the server again, with more", HTTPStatus.GONE
            )
        if request.action == "TeleportFull":
            index, ignored = self._starting_at(request.arguments)
        else:
            index, ignored = next(iter(self._remaining)), self._check_simulator(request.arguments)
        episode = self._remaining.pop(index)
        self._index = index
        self.env.reset(episode, AGENT_NAME, self._seed + index)
        record = self.env.record
        self._odom_to_map = SE2() if record.pose.frame == MAP_FRAME else episode.start @ record.pose.pose.inverse()
        return ignored

    def _check_simulator(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names of ignored arguments. Raises ``Refused`` for one that contradicts the task."""
        camera, sizes = self._task.camera, self._task.magnitudes
        vertical_deg = math.degrees(2 * math.atan(camera.height / 2 / camera.intrinsics.fy))
        known = {"gridSize": sizes.forward_m, "rotateStepDegrees": sizes.turn_deg, "fieldOfView": vertical_deg}
        for name, value in known.items():
            if name in arguments:
                check_size(name, arguments[name], value, self._task)
        scene = next(iter(self._remaining.values())).scene
        wanted = arguments.get("sceneName", scene)
        if not isinstance(wanted, str) or wanted.removesuffix("_physics") != scene:
            raise Refused(f"the next episode is in scene {scene!r}, not in {str(wanted)[:100]!r}", "leave it out")
        return sorted(name for name in arguments if name not in known and name != "sceneName")

    def _starting_at(self, arguments: Mapping[str, Any]) -> tuple[int, list[str]]:
        """The first remaining episode that starts at a pose, and the names of arguments besides the pose."""
        turned = arguments.get("rotation", {})
        yaw_deg = turned.get("y", 0.0) if isinstance(turned, dict) else turned
        numbers = [arguments.get("x"), arguments.get("y", AGENT_HEIGHT_M), arguments.get("z"), yaw_deg]
        x, y, z, yaw_deg = (number("TeleportFull", value) for value in numbers)
        x_m, y_m, _ = thor_to_ros_position(x, y, z)
        pose = SE2(x_m, y_m, thor_rotation_to_yaw(yaw_deg))
        tilt_rad = None
        if "horizon" in arguments:
            tilt_rad = thor_horizon_to_tilt(number("horizon", arguments["horizon"]))
        for index, episode in self._remaining.items():
            if self._starts(episode, pose, tilt_rad):
                return index, sorted(set(arguments) - {"x", "y", "z", "rotation", "horizon"})
        raise Refused(
            f"no episode that is still to be run starts at x {x:.2f}, z {z:.2f}, rotation {yaw_deg:.0f}",
            "a robot goes only where an episode starts: give the server the client's episode file",
        )

    def _starts(self, episode: Episode, pose: SE2, tilt_rad: float | None) -> bool:
        start_rad = self._task.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
        angles = [wrap_angle(pose.yaw_rad - episode.start.yaw_rad)]
        if tilt_rad is not None:
            angles.append(wrap_angle(tilt_rad - start_rad))
        near = pose.distance_to(episode.start) <= START_TOLERANCE_M
        return near and all(abs(angle) <= START_TOLERANCE_RAD for angle in angles)

    # --- answers ----------------------------------------------------------------------------------------------------

    def _observed(self, request: Request, ignored: list[str]) -> bytes:
        """The last step as an event."""
        record, result = self.env.record, self.env.record.result
        success, error = True, ""
        if result is not None and request.action != PASS:
            success = result.succeeded
            error = result.detail or ("" if success else f"the action ended as {result.outcome.value}")
        event = messages.event(self._task.camera, request.action, success, "", error)
        event["agent"] = messages.agent(self._odom_to_map @ record.pose.pose, record.head.tilt_rad)
        event["collided"] = result is not None and result.collided
        episode = self.env.episode
        event["sceneName"] = episode.scene
        event["robotRuntime"] = {
            "episode": episode.id,
            "index": self._index,
            "episodes": len(self._episodes),
            "objectType": episode.category,
            "steps": record.index,
            "over": self.env.episode_over,
            "end": self.env.end.reason.value if self.env.episode_over else None,
            "ignored": ignored,
        }
        return messages.pack(request.sequence, event, self._task.camera, record.observation if request.images else {})
