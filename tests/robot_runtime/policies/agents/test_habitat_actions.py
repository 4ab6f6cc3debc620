"""Decoding of the answers of the Habitat challenges' agents, by year."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from box_world import make_task
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import HABITAT_2020, HABITAT_2023, Action, Displacement
from robot_runtime.actions.timed import Control, Decision, TimedAction, VelocityControl, scaled
from robot_runtime.actions.timed_values import check_timed
from robot_runtime.errors import PolicyError, RuntimeFault, UnknownAction
from robot_runtime.policies.agents import worker
from robot_runtime.policies.agents.habitat import Habitat2019Interface, HabitatInterface
from robot_runtime.policies.agents.opener import AgentOpener
from robot_runtime.policies.openers import OPENERS
from robot_runtime.tasks.task import Task, load_task

APPROX: Any = pytest.approx
IN_2022, IN_2023 = load_task("objectnav_hm3d2022"), load_task("objectnav_hm3d2023")


def meant(returned: Any, task: Task = IN_2023) -> Decision:
    return HabitatInterface("mine", {}).decision(returned, task)[0]


def velocity(linear: Any = 0.0, angular: Any = 0.0, **more: Any) -> dict[str, Any]:
    arguments = {"linear_velocity": linear, "angular_velocity": angular, "velocity_stop": -1.0, **more}
    return {"action": ("velocity_control", "velocity_stop"), "action_args": arguments}


def waypoint(xyt: Any = (0.0, 0.0, 0.0), duration: Any = 1.0, **more: Any) -> dict[str, Any]:
    arguments = {"xyt_waypoint": xyt, "max_duration": duration, "velocity_stop": [-1.0], **more}
    return {"action": ("waypoint_control", "velocity_stop"), "action_args": arguments}


@pytest.mark.parametrize("dialect", [HABITAT_2020, HABITAT_2023])
def test_action_names_of_each_challenge(dialect: Any) -> None:
    for action, word in zip(dialect.actions, dialect.spellings, strict=True):
        for returned in (word, np.str_(word), {"action": word}, (word,), {"action": [word], "action_args": None}):
            assert meant(returned) is action


def test_the_ids_of_2019_are_others() -> None:
    """habitat-api v0.1.0: SIM_ACTION_TO_NAME, from which the challenge's agents took their ids."""
    of_2019 = Habitat2019Interface("mine", {})
    words = [of_2019.decision(number, IN_2023)[0] for number in range(4)]
    assert words == [Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, Action.STOP]
    assert meant(0) is Action.STOP
    with raises_naming(UnknownAction, "v0.1.0"):
        of_2019.decision(4, IN_2023)


def test_the_goal_of_2019_is_updated_at_every_step() -> None:
    of_2019 = Habitat2019Interface("mine", {})
    live, static = np.array([1.0, 0.5], np.float32), np.array([4.0, 0.0], np.float32)
    shown = of_2019.agent_observation({"pointgoal": static, "pointgoal_with_gps_compass": live}, IN_2023)
    np.testing.assert_array_equal(shown["pointgoal"], live)
    assert of_2019.needs == ("pointgoal_with_gps_compass",)


def test_the_worker_has_every_kind() -> None:
    openers = OPENERS.usable().items()
    interfaces = {scheme: opener.interface.kind for scheme, opener in openers if isinstance(opener, AgentOpener)}
    assert interfaces == {name: name for name in worker.INTERFACES}


# habitat-lab, tag challenge-2023, VelocityAction._preprocess_action: -1 .. 1 onto [0, 0.3] m/s and ±0.45 rad/s.
@pytest.mark.parametrize(
    ("returned", "command"),
    [
        (velocity(1.0, 1.0), timed.velocity(0.3, 0.45, 0.0, 0.1)),
        (velocity(-1.0, -1.0), timed.velocity(0.0, -0.45, 0.0, 0.1)),
        (velocity(0.0, 0.0), timed.velocity(0.15, 0.0, 0.0, 0.1)),
        (velocity(5, -5), timed.velocity(0.3, -0.45, 0.0, 0.1)),
        (velocity(np.array([1.0]), np.float32(0), camera_pitch_velocity=[1.0]), timed.velocity(0.3, 0.0, 0.45, 0.1)),
        (velocity([-1.0], [0.0], camera_pitch_angular_velocity=-1.0), timed.velocity(0.0, 0.0, -0.45, 0.1)),
        ({"action": "velocity_stop", "action_args": {"velocity_stop": -0.1}}, timed.velocity(0.0, 0.0, 0.0, 0.1)),
    ],
)
def test_velocities_are_scaled_onto_the_challenges_ranges(returned: Any, command: TimedAction) -> None:
    decision = meant(returned)
    assert isinstance(decision, TimedAction)
    for name in ("linear_m_s", "angular_rad_s", "tilt_rad", "after_s"):
        assert getattr(decision.points[0], name) == pytest.approx(getattr(command.points[0], name), abs=1e-12)


def test_waypoints_are_scaled_onto_the_challenges_ranges() -> None:
    decision = meant(waypoint(np.array([1.0, -0.5, 0.5]), np.array([0.25]), delta_camera_pitch_angle=np.array([-1.0])))
    assert decision == timed.waypoint(0.5, -0.25, APPROX(math.pi / 2), -0.2, 2.5)


@pytest.mark.parametrize("stop", [0.1, [1.0], np.array([0.001])])
@pytest.mark.parametrize("make", [velocity, waypoint])
def test_a_stop_above_zero_stops(make: Any, stop: Any) -> None:
    assert meant(make(velocity_stop=stop)) is Action.STOP


@pytest.mark.parametrize("stop", [0.0, -1.0, [0.0]])
def test_a_stop_of_zero_does_not(stop: Any) -> None:
    assert meant(velocity(velocity_stop=stop)) is not Action.STOP


def test_in_2022_a_slow_command_means_stop() -> None:
    def returned(linear: float, angular: float) -> dict[str, Any]:
        arguments = {"linear_velocity": linear, "angular_velocity": angular}
        return {"action": "velocity_control", "action_args": arguments}

    slow = -1 + 2 * 0.024 / 0.25  # 0.024 m/s, where 0.025 is the threshold
    assert meant(returned(slow, 0.0), IN_2022) is Action.STOP
    assert meant(returned(slow, 0.11), IN_2022) == timed.velocity(APPROX(0.024), APPROX(math.radians(1.1)), 0.0, 1.0)
    assert meant(returned(-1 + 2 * 0.026 / 0.25, 0.0), IN_2022) == timed.velocity(APPROX(0.026), 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "returned",
    [
        velocity(math.nan),
        velocity(math.inf),
        velocity("fast"),
        velocity(None),
        velocity(True),
        velocity([1.0, 2.0]),
        velocity(velocity_stop=[]),
        velocity(time_step=3.0),
        waypoint((1.0, 2.0)),
        waypoint(None),
        waypoint((1.0, 2.0, math.nan)),
        waypoint((1.0, 2.0, "left")),
        waypoint(duration=None),
        {"action": ("velocity_control", "velocity_stop")},
        {"action": ("velocity_control",), "action_args": {"linear_velocity": 0.1}},
        {"action": ("velocity_control", "waypoint_control"), "action_args": {}},
        {"action": ("velocity_control", "fly"), "action_args": {}},
        {"action": "velocity_control", "action_args": 3},
        {"action": ()},
    ],
)
def test_an_invalid_answer_is_refused_with_a_remedy(returned: Any) -> None:
    with raises_naming(PolicyError):
        meant(returned)


@pytest.mark.parametrize(
    ("returned", "task"), [(waypoint(), IN_2022), (velocity(), make_task()), (velocity(), load_task("eqa_habitat"))]
)
def test_a_continuous_action_without_control_is_refused(returned: Any, task: Task) -> None:
    with raises_naming(UnknownAction, task.name, "objectnav_hm3d2023"):
        meant(returned, task)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=4)
        | st.sampled_from(["action", "action_args", "velocity_control", "velocity_stop", "waypoint_control", "stop"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner, inner)
            | st.dictionaries(
                st.sampled_from(["action", "action_args", "linear_velocity", "angular_velocity", "velocity_stop"]),
                inner,
            )
        ),
        max_leaves=8,
    )
)
def test_any_answer_is_an_action_or_refused(returned: Any) -> None:
    try:
        decision = meant(returned)
    except RuntimeFault:
        return
    assert isinstance(decision, Action | TimedAction)


def test_commands_have_displacements() -> None:
    assert timed.velocity(0.2, 0.1, -0.1, 2.0).displacement == Displacement(0.4, 0.2, -0.2)
    assert timed.waypoint(0.3, 0.4, 1.0, 0.1, 5.0).displacement == Displacement(0.3, 1.0, 0.1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_command_that_is_not_finite_is_refused(value: float) -> None:
    with raises_naming(UnknownAction, "angular_rad_s"):
        check_timed(timed.velocity(0.1, value, 0.0, 0.1), IN_2023.control, "t")


@pytest.mark.parametrize(
    "changes",
    [{"linear_m_s": (0.3, 0.0)}, {"angular_rad_s": (math.nan, 1.0)}, {"time_step_s": 0.0}, {"stop_below_m_s": 0.1}],
)
def test_invalid_ranges_are_refused(changes: dict[str, Any]) -> None:
    given_ranges: dict[str, Any] = {
        "linear_m_s": (0.0, 0.3),
        "angular_rad_s": (-1.0, 1.0),
        "tilt_rad_s": (0.0, 0.0),
        "time_step_s": 0.1,
    }
    VelocityControl(**given_ranges)
    with pytest.raises(ValueError, match=next(iter(changes))):
        VelocityControl(**{**given_ranges, **changes})


def test_a_control_needs_velocities_or_waypoints() -> None:
    with pytest.raises(ValueError, match="velocity"):
        Control((0.0, 0.0))


def test_continuous_actions_do_not_stand_among_the_discrete() -> None:
    with pytest.raises(ValueError, match="control"):
        make_task(actions=(Action.STOP, Action.VELOCITY_CONTROL))


def test_scaling_clips() -> None:
    assert [scaled(v, (-1.0, 1.0), (0.0, 10.0)) for v in (-3.0, -1.0, 0.0, 0.5, 2.0)] == [0.0, 0.0, 5.0, 7.5, 10.0]


@pytest.mark.parametrize(
    ("returned", "decisions"),
    [
        (
            {"trajectory": np.array([[0.1, 0.0, 0.0], [0.2, 0.0, 0.5]]), "period_s": 0.25, "exposure_ns": 7},
            [timed.trajectory([[0.1, 0.0, 0.0], [0.2, 0.0, 0.5]], 0.25, 7)],
        ),
        ({"linear_m_s": 0.2, "angular_rad_s": 0.1, "settle": False}, [timed.velocity(0.2, 0.1, settle=False)]),
        ({"x_m": 0.5, "y_m": 0.1, "yaw_rad": 0.0}, [timed.waypoint(0.5, 0.1, 0.0)]),
        ({"chunk": [1, "turn_left", 2], "carry_out": 2}, [Action.MOVE_FORWARD, Action.TURN_LEFT]),
        ({"chunk": [0]}, [Action.STOP]),
        (1, [Action.MOVE_FORWARD]),
    ],
)
def test_agents_return_timed_actions_and_chunks(returned: Any, decisions: list[Any]) -> None:
    assert HabitatInterface("a", {}).decisions(returned, IN_2023)[0] == tuple(decisions)


@pytest.mark.parametrize(
    "returned",
    [
        {"trajectory": [], "period_s": 0.1},
        {"trajectory": [[1.0]], "period_s": 0.1},
        {"trajectory": [[1.0, 2.0], [1.0, 2.0, 3.0]], "period_s": 0.1},
        {"trajectory": "far", "period_s": 0.1},
        {"trajectory": [[1.0, 0.0]]},
        {"trajectory": [[1.0, 0.0]], "period_s": 0.1, "speed": 1},
        {"linear_m_s": "fast", "angular_rad_s": 0.0},
        {"points": []},
        {"points": [{"after_s": 1.0}, {"after_s": 2.0, "pose": {"x_m": 0.0, "y_m": 0.0, "yaw_rad": 0.0}}]},
        {"chunk": []},
        {"chunk": 3},
        {"chunk": [1], "carry_out": 2},
        {"chunk": [[1, 2]]},
        [[1, 2]],
    ],
)
def test_malformed_timed_actions_are_refused_with_their_form(returned: Any) -> None:
    with pytest.raises(RuntimeFault) as caught:
        HabitatInterface("a", {}).decisions(returned, IN_2023)
    assert caught.value.remedy


def test_a_trajectory_without_headings_follows_the_circle_through_its_points() -> None:
    angles = [0.1 * number for number in range(1, 9)]
    made = timed.trajectory([[math.sin(angle), 1 - math.cos(angle)] for angle in angles], 0.25)
    assert [point.pose.yaw_rad for point in made.points if point.pose] == pytest.approx(angles, abs=1e-9)
    assert [point.after_s for point in made.points] == pytest.approx([0.25 * number for number in range(1, 9)])
