"""Sixty wrong inputs: each ends with a cause and a remedy, its exit code, and no traceback; its remedy works.

A row has the wrong command, its exit code, and the command that its remedy asks for, or that this is for a person.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from small_campaign import write_light_task, write_plan

from robot_runtime.cli.main import run_command
from robot_runtime.scenes.scene import find_scene

FAKE = "run --robot fake --count 1 --out DIR/logs"
WRONG = f"""
fly | 2 | info
help | 2 | --help
campaign fly | 2 | campaign --help
run --fly | 2 | run --help
run --count | 2 | run --count 1
run --count zero | 2 | run --count 1
run --count 0 | 2 | run --count 1
run --seed -1 | 2 | run --seed 0
run --robot nothing | 2 | run --robot fake
run --robot DIR/absent.yaml | 2 | run --robot DIR/robot.yaml
run --robot DIR/text.txt | 2 | run --robot DIR/robot.yaml
run --robot DIR/empty.yaml | 2 | run --robot DIR/robot.yaml
run --robot DIR/list.yaml | 2 | run --robot DIR/robot.yaml
run --robot DIR/torn.yaml | 2 | run --robot DIR/robot.yaml
{FAKE} --robot-arg hfov_deg | 2 | {FAKE} --robot-arg hfov_deg=79
{FAKE} --robot-arg hfov_dag=60 | 2 | {FAKE} --robot-arg hfov_deg=60
{FAKE} --robot-arg hfov_deg=wide | 2 | {FAKE} --robot-arg hfov_deg=179.0
{FAKE} --camera nothing | 2 | {FAKE} --camera replay
{FAKE} --camera-arg width=3 | 2 | person
{FAKE} --localizer nothing | 2 | {FAKE} --localizer odometry
{FAKE} --referee nothing | 2 | {FAKE} --referee odometry
{FAKE} --task nothing | 2 | {FAKE} --task pointnav_quick
{FAKE} --task DIR/empty.yaml | 2 | {FAKE} --task DIR/task.yaml
{FAKE} --sensor sonar | 2 | {FAKE} --sensor floor_plan
{FAKE} --scene nothing | 4 | {FAKE} --scene arena
{FAKE} --scene DIR | 4 | scene from-map DIR/map.yaml --out DIR/lab
{FAKE} --scene DIR/text.txt | 4 | {FAKE} --scene apartment
{FAKE} --policy nothing | 9 | {FAKE} --policy bug
{FAKE} --policy nothing.zip | 9 | person
{FAKE} --policy DIR/text.txt | 9 | person
{FAKE} --policy no_such_module:Agent | 9 | {FAKE} --policy DIR/agents.py:Agent
{FAKE} --policy os:NoSuchClass | 9 | {FAKE} --policy DIR/agents.py:Agent
{FAKE} --policy oracle --agent oracle | 2 | {FAKE} --policy oracle
{FAKE} --policy oracle --agent-arg radius | 2 | {FAKE} --policy oracle --agent-arg looks_every=2
{FAKE} --policy oracle --agent-arg radius=2 | 9 | {FAKE} --policy oracle --agent-arg looks_every=1
{FAKE} --policy oracle --agent-python DIR/venv | 2 | {FAKE} --policy oracle
{FAKE} --episodes DIR/absent.json | 5 | episodes generate --out DIR/absent.json --count 1 --scene arena
{FAKE} --episodes DIR/text.txt | 5 | {FAKE} --scene arena --episodes DIR/starts.yaml
{FAKE} --episodes DIR/list.json | 5 | {FAKE} --scene arena --episodes DIR/starts.yaml
{FAKE} --episode 7 | 2 | {FAKE}
run --robot fake --episode 0 --count 2 | 2 | run --robot fake --episode 0
run --robot fake --resume | 2 | run --robot fake --resume --out DIR/logs
run --robot fake --count 1 --out DIR/text.txt | 8 | run --robot fake --count 1 --out DIR/new
score | 2 | score DIR/logs
score DIR/absent | 8 | score DIR/logs
score DIR/text.txt | 1 | score DIR/logs
score DIR --json | 2 | score DIR/logs --json DIR/scores.json
compare DIR/absent DIR | 8 | compare DIR/logs DIR/logs
report DIR/absent | 8 | report DIR/logs --out DIR/report
gap DIR/absent DIR/absent | 8 | gap DIR/logs DIR/logs
view DIR/absent | 8 | view DIR/logs --out DIR/e.rrd
view DIR/text.txt --out DIR/e.mp4 | 2 | view DIR/logs --out DIR/e.rrd
scene info nothing | 4 | scene info apartment
scene from-map DIR/absent.yaml --out DIR/lab | 2 | scene from-map DIR/map.yaml --out DIR/lab2
scene from-map DIR/list.yaml --out DIR/lab | 2 | scene from-map DIR/map.yaml --out DIR/lab3
episodes info DIR/absent.json | 5 | episodes info DIR/starts.yaml
episodes validate DIR/text.txt | 5 | episodes validate DIR/starts.yaml
policy inspect DIR/text.txt | 9 | person
doctor nothing | 2 | doctor computer
campaign status DIR/absent.yaml | 2 | person
campaign plan DIR/empty.yaml | 2 | campaign plan DIR/plan.yaml
calibrate odometry --robot nothing --out DIR/o.yaml | 2 | calibrate odometry --help
jog --robot nothing --keys w | 2 | jog --robot fake --keys w
logs recover DIR/absent.mcap --out DIR/b.mcap | 8 | logs recover LOG --out DIR/b.mcap
export steps DIR/absent --out DIR/s.csv | 8 | export steps DIR/logs --out DIR/s.csv
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
    assert len({line for line, _, _ in CASES}) >= 60


@pytest.mark.parametrize(("line", "code"), [row[:2] for row in CASES], ids=lambda value: re.sub(r"\W+", "-", value))
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


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of good files, and of a log."""
    made = tmp_path_factory.mktemp("mended")
    (made / "robot.yaml").write_text("name: mine\ndriver: drivers.fake.driver.make_robot\n", encoding="utf-8")
    agent = "class Agent:\n    def reset(self): pass\n    def act(self, observations): return 'STOP'\n"
    (made / "agents.py").write_text(agent, encoding="utf-8")
    shutil.copy(write_light_task(made), made / "task.yaml")
    for name in ("map.yaml", "map.pgm"):
        shutil.copy(f"{find_scene('arena')}/{name}", made / name)
    write_plan(made, 1)
    run = f"run --robot fake --scene arena --task {made}/task.yaml --agent random --count 1 --out {made}/logs"
    assert run_command(run.split()) == 0
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "remedied"), [(line, remedied) for line, _, remedied in CASES if remedied != "person"]
)
def test_what_the_remedy_asks_for_succeeds(line: str, remedied: str, mended: Path) -> None:
    log = next((mended / "logs").glob("*.mcap"))
    words = remedied.replace("DIR", str(mended)).replace("LOG", str(log)).split()
    words += ["--print-config"] if words[0] == "run" and "--help" not in words else []
    assert run_command(words) == 0, line
