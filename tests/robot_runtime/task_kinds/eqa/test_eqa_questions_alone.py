"""Questions of EmbodiedQA v1 without episodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from raising import raises_naming

from robot_runtime.datasets.files import load_episodes
from robot_runtime.errors import EpisodeError


@pytest.mark.parametrize(
    "listed", [{"house": [{"question": "?", "answer": "red"}]}, [{"question": "?", "answer": "red"}]]
)
def test_questions_without_episodes_are_named_with_the_command_that_makes_them(tmp_path: Path, listed: Any) -> None:
    for document in ({"questions": listed, "splits": {}}, listed):
        path = tmp_path / "eqa_v1.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        with raises_naming(EpisodeError, path, "EmbodiedQA v1", "episodes questions", "--episodes-out"):
            load_episodes(path)
