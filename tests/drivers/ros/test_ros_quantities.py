"""One source for each quantity: mixed nodes and frames with two parents are named; a restarted node is not."""

from __future__ import annotations

import pytest
from raising import raises_naming

from drivers.ros.connection.errors import TwoSources
from drivers.ros.connection.quantities import Sources, TfTree


def test_two_nodes_in_turn_are_named() -> None:
    sources = Sources()
    with raises_naming(TwoSources, "/odom", "/kobuki", "/simulator"):
        for node in ("/kobuki", "/simulator", "/kobuki"):
            sources.check("topic /odom", node)


def test_a_node_that_was_restarted_under_another_name_is_no_second_source() -> None:
    sources = Sources()
    for node in ("/amcl_1", "/amcl_1", "/amcl_2", "/amcl_2"):
        sources.check("topic /amcl_pose", node)
    sources.check("topic /odom", "/amcl_1")


def test_a_frame_of_the_chain_with_two_parents_is_named() -> None:
    tree = TfTree()
    tree.add("base", "odom", "/kobuki")
    tree.add("odom", "map", "/amcl")
    assert list(tree.chain("base", "map")) == ["base", "odom"]
    tree.add("base", "world", "/mocap")
    with raises_naming(TwoSources, "base", "odom (by /kobuki)", "world (by /mocap)"):
        list(tree.chain("base", "map"))


@pytest.mark.parametrize("frame", ["camera", "marker"])
def test_frames_beside_the_chain_do_not_matter(frame: str) -> None:
    tree = TfTree()
    tree.add("base", "map", "/amcl")
    for parent in ("base", "world"):
        tree.add(frame, parent, "/other")
    assert list(tree.chain("base", "map")) == ["base"]


def test_one_transform_by_two_nodes_is_named() -> None:
    tree = TfTree()
    tree.add("base", "odom", "/kobuki")
    for node in ("/amcl", "/slam", "/amcl"):
        tree.add("odom", "map", node)
    with raises_naming(TwoSources, "/amcl", "/slam", "odom"):
        list(tree.chain("base", "map"))


def test_a_loop_ends() -> None:
    tree = TfTree()
    tree.add("a", "b", "/x")
    tree.add("b", "a", "/x")
    assert len(list(tree.chain("a", "map"))) <= 2
