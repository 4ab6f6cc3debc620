"""The source of a policy in a log: it can be loaded again, and later versions are detected."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
import tiny_package as tiny
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.errors import PolicyChanged, PolicyError
from robot_runtime.policies import load_source
from robot_runtime.policy import PolicySource
from robot_runtime.recording import json_output
from robot_runtime.recording.header import header_from_json, header_to_json, scene_files
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader

AGENT = textwrap.dedent(
    """
    class Turning:
        def __init__(self, table=None):
            pass
        def reset(self):
            pass
        def act(self, observations):
            return "turn_left"
    """
)


def again(header: EpisodeHeader) -> EpisodeHeader:
    data = json.loads(json_output.dumps(header_to_json(header)))
    files = {name: content for name, _, content in scene_files(header)}
    return header_from_json(Path("a.mcap"), data, files, {})


def test_a_header_keeps_the_source():
    source = PolicySource("habitat:mine.py:A", {"checkpoint": "a.pth"}, "venv", 90.0, "ab" * 32)
    assert again(synthetic.header(policy=source)).policy == source


def test_headers_of_earlier_logs_have_none():
    assert again(synthetic.header()).policy is None
    data = json.loads(json_output.dumps(header_to_json(synthetic.header())))
    del data["policy"]
    files = {name: content for name, _, content in scene_files(synthetic.header())}
    assert header_from_json(Path("a.mcap"), data, files, {}).policy is None


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return tiny.write_tiny(tmp_path / "tiny.zip")


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(AGENT)
    return file


def test_arguments_are_yaml_scalars_for_every_kind_of_agent(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    texts = {
        "a": "3",
        "b": "0.5",
        "c": "1e-3",
        "d": "true",
        "e": "null",
        "f": "far",
        "g": "[1, 2]",
        "h": "'7'",
        "token": "12",
    }
    values = {"a": 3, "b": 0.5, "c": 0.001, "d": True, "e": None, "f": "far", "g": "[1, 2]", "h": "7", "token": "12"}
    assert PolicySource("x", texts).values() == values
    file = tmp_path / "typed.py"
    file.write_text(AGENT.replace("table=None):\n        pass", "near, table=None):\n        assert near * 2 == 1.0"))
    for kind in ("", "habitat:"):
        loaded(PolicySource(f"{kind}{file}:Turning", {"near": "0.5"}))


def loaded(source: PolicySource) -> PolicySource:
    policy = load_source(source)
    policy.close()
    assert policy.source is not None
    return policy.source


def test_a_package_is_loaded_again_from_its_source(package: Path):
    source = loaded(PolicySource(str(package), {"selection": "sample"}))
    assert source.digest is not None
    assert loaded(source) == source


def test_a_package_has_one_digest_as_a_zip_and_as_a_folder(package: Path, tmp_path: Path):
    shutil.unpack_archive(package, tmp_path / "unpacked")
    zipped, folder = loaded(PolicySource(str(package))), loaded(PolicySource(str(tmp_path / "unpacked")))
    assert zipped.digest == folder.digest


def test_another_version_of_a_package_is_refused(package: Path):
    source = loaded(PolicySource(str(package)))
    package.unlink()
    tiny.write_tiny(package, seed=1)
    with raises_naming(PolicyChanged, str(source.digest)[:12], "--policy"):
        load_source(source)
    now = loaded(replace(source, digest=None))
    assert now.digest not in (None, source.digest)


def test_the_digest_covers_a_python_file_and_the_files_of_its_arguments(agent: Path, tmp_path: Path):
    table = tmp_path / "table.bin"
    table.write_bytes(b"1")
    source = loaded(PolicySource(f"{agent}:Turning", {"table": str(table)}))
    assert loaded(source) == source
    table.write_bytes(b"2")
    with raises_naming(PolicyChanged, agent, str(source.digest)[:12]):
        load_source(source)
    table.write_bytes(b"1")
    agent.write_text(AGENT + "\n# later\n")
    with raises_naming(PolicyChanged, agent, str(source.digest)[:12]):
        load_source(source)


def test_a_missing_policy_is_named(package: Path, agent: Path):
    for source in (loaded(PolicySource(str(package))), loaded(PolicySource(f"habitat:{agent}:Turning"))):
        (package if ":" not in source.spec else agent).unlink()
        with raises_naming(
            PolicyChanged, source.spec.rpartition(":")[0].removeprefix("habitat:") or source.spec, "--policy"
        ):
            load_source(source)


def test_shipped_agents_have_the_runtimes_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("random").write_text("a file of that name is not the agent")
    assert loaded(PolicySource("random", {"stop_distance_m": "0.3"})).digest is None


def test_a_servers_token_stays_out_of_logs():
    source = PolicySource("ws://127.0.0.1:1", {"token": "secret", "reconnect_s": "0.01"})
    with pytest.raises(PolicyError):  # no server
        load_source(source)
    assert source.public().arguments == {"reconnect_s": "0.01"}


@pytest.mark.slow
def test_run_logs_the_policy_and_the_users_name_for_it(tmp_path: Path):
    arguments = ["--robot", "fake", "--agent", "random", "--agent-arg", "stop_distance_m=30", "--count", "1"]
    assert run_command(["run", *arguments, "--name", "careful", "--out", str(tmp_path)]) == 0
    with LogReader(min(tmp_path.glob("*.mcap"))) as log:
        assert log.header.agent == "careful"
        assert log.header.policy == PolicySource("random", {"stop_distance_m": "30"})
