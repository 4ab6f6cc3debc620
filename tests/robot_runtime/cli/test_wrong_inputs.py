"""Sixty wrong inputs: each ends with a cause and a remedy, its exit code, and no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from robot_runtime.cli.main import run_command

FAKE = "run --robot fake --count 1 --out DIR/logs"
WRONG = f"""
fly | 2
help | 2
campaign fly | 2
run --fly | 2
run --count | 2
run --count zero | 2
run --count 0 | 2
run --seed -1 | 2
run --robot nothing | 2
run --robot DIR/absent.yaml | 2
run --robot DIR/text.txt | 2
run --robot DIR/empty.yaml | 2
run --robot DIR/list.yaml | 2
run --robot DIR/torn.yaml | 2
{FAKE} --robot-arg hfov_deg | 2
{FAKE} --robot-arg hfov_dag=60 | 2
{FAKE} --robot-arg hfov_deg=wide | 2
{FAKE} --camera nothing | 2
{FAKE} --camera-arg width=3 | 2
{FAKE} --localizer nothing | 2
{FAKE} --referee nothing | 2
{FAKE} --task nothing | 2
{FAKE} --task DIR/empty.yaml | 2
{FAKE} --sensor sonar | 2
{FAKE} --scene nothing | 4
{FAKE} --scene DIR | 4
{FAKE} --scene DIR/text.txt | 4
{FAKE} --policy nothing | 9
{FAKE} --policy nothing.zip | 9
{FAKE} --policy DIR/text.txt | 9
{FAKE} --policy no_such_module:Agent | 9
{FAKE} --policy os:NoSuchClass | 9
{FAKE} --policy oracle --agent oracle | 2
{FAKE} --policy oracle --agent-arg radius | 2
{FAKE} --policy oracle --agent-arg radius=2 | 9
{FAKE} --policy oracle --agent-python DIR/venv | 2
{FAKE} --episodes DIR/absent.json | 5
{FAKE} --episodes DIR/text.txt | 5
{FAKE} --episodes DIR/list.json | 5
{FAKE} --episode 7 | 2
run --robot fake --episode 0 --count 2 | 2
run --robot fake --resume | 2
run --robot fake --count 1 --out DIR/text.txt | 8
score | 2
score DIR/absent | 8
score DIR/text.txt | 1
score DIR --json | 2
compare DIR/absent DIR | 8
report DIR/absent | 8
gap DIR/absent DIR/absent | 8
view DIR/absent | 8
view DIR/text.txt --out DIR/e.mp4 | 2
scene info nothing | 4
scene from-map DIR/absent.yaml --out DIR/lab | 2
scene from-map DIR/list.yaml --out DIR/lab | 2
episodes info DIR/absent.json | 5
episodes validate DIR/text.txt | 5
policy inspect DIR/text.txt | 9
doctor nothing | 2
campaign status DIR/absent.yaml | 2
campaign plan DIR/empty.yaml | 2
calibrate odometry --robot nothing --out DIR/o.yaml | 2
jog --robot nothing --keys w | 2
logs recover DIR/absent.mcap --out DIR/b.mcap | 8
export steps DIR/absent --out DIR/s.csv | 8
""".strip()
CASES = [tuple(line.split(" | ")) for line in WRONG.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "text.txt": "hello\n",
        "empty.yaml": "",
        "list.yaml": "- 1\n",
        "list.json": "[1, 2]",
        "torn.yaml": "name: [\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_there_are_sixty() -> None:
    assert len({line for line, _ in CASES}) >= 60


@pytest.mark.parametrize(("line", "code"), CASES, ids=lambda value: re.sub(r"\W+", "-", value))
def test_a_wrong_input_is_answered_with_cause_and_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, code: str
) -> None:
    assert run_command([word.replace("DIR", str(folder)) for word in line.split()]) == int(code)
    captured = capsys.readouterr()
    message = captured.out + captured.err
    assert "Traceback" not in message
    if line.startswith("score DIR/text"):  # a log that cannot be scored is listed with its reason
        assert "not scored" in message
        return
    (cause,) = re.findall(r"error:(.+)", message)
    (remedy,) = re.findall(r"remedy:(.+)", message)
    assert cause.strip()
    assert remedy.strip()
