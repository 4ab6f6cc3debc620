"""A command that finds nothing to do says so, with a remedy, and does not exit with 0."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from small_campaign import write_plan

from robot_runtime.cli.main import run_command

FILES = {
    "habitat.json": '{"episodes": []}',
    "r2r.json": '{"episodes": [], "instruction_vocab": {"word_list": []}}',
    "list.json": "[]",
    "native.yaml": "schema: 1\nscene: arena\nepisodes: []\n",
    "blank.jsonl": "\n\n",
    "nothing": "",
    "cases.json": '{"cases": []}',
    "w.world": '<sdf version="1.6"><world name="w"></world></sdf>',
    "m.obj": "# no faces\n",
    "tags.yaml": "tag_bundles: []\nstandalone_tags: []\n",
    "chain.yaml": "{}",
}
SPLITS = ("habitat.json", "packed.json.gz", "r2r.json", "list.json", "native.yaml", "blank.jsonl", "nothing")
OF_LOGS = """
score LOGS
compare LOGS LOGS
report LOGS --out OUT
gap LOGS LOGS
gap tune LOGS --out OUT
view LOGS --out OUT.rrd
replay LOGS --into sim --out OUT
fit LOGS --out OUT
scene from-log LOGS --out OUT
scene diff arena LOGS
tags survey LOGS --tag-m 0.16 --out OUT.yaml
export bag LOGS --out OUT
export lerobot LOGS --out OUT
export steps LOGS --out OUT.csv
export video LOGS --out OUT
verdict add LOGS --by me --success
score LOGS --submission habitat --out OUT.json
""".strip().splitlines()
OTHERS = """
score
score --cases DIR/cases.json
logs recover DIR/nothing --out OUT.mcap
logs recover DIR/torn/torn.mcap --out OUT.mcap
scene import --bulk DIR/empty --out OUT
scene import DIR/w.world --out OUT
scene import DIR/m.obj --out OUT
scene view-points DIR/empty
scene info DIR/empty
tags make --ids , --out OUT.pdf
jog --robot fake --keys=
jog --robot fake --keys=???
calibrate import DIR/tags.yaml --out OUT.yaml
calibrate import DIR/chain.yaml --robot lab --out OUT.yaml
calibrate import DIR/nothing --robot lab --out OUT.yaml
campaign status DIR/empty
campaign verify DIR/empty
campaign report DIR/empty
campaign plan DIR/plan.yaml
campaign run DIR/plan.yaml --out OUT
policy inspect DIR/empty
policy validate DIR/empty
run --robot fake --episodes DIR/one.yaml --episode 7 --out OUT
episodes convert DIR/nothing --out OUT.json.gz
""".strip().splitlines()
COMMANDS = [
    *(f"{command} DIR/{split}{more}" for split in SPLITS for command, more in (
        ("episodes info", ""), ("episodes validate", ""), ("run --robot fake --scene arena --out OUT --episodes", ""),
        ("scene export arena --out OUT --episodes", ""), ("run --robot fake --keep-going --out OUT --episodes", ""),
    )),
    *(command.replace("LOGS", folder) for command in OF_LOGS for folder in ("DIR/empty", "DIR/torn")),
    *OTHERS,
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nothing")
    for name, text in FILES.items():
        (made / name).write_text(text, encoding="utf-8")
    (made / "packed.json.gz").write_bytes(gzip.compress(FILES["habitat.json"].encode()))
    (made / "empty").mkdir()
    (made / "torn").mkdir()
    (made / "torn" / "torn.mcap").write_bytes(b"\x89MCAP0\r\n")
    write_plan(made, 1)
    (made / "starts.yaml").rename(made / "one.yaml")
    (made / "starts.yaml").write_text(FILES["native.yaml"], encoding="utf-8")
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_it_says_so(command: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word.replace("DIR", str(folder)).replace("OUT", str(tmp_path / "out")) for word in command.split()]
    assert run_command(words) not in (0, None)
    captured = capsys.readouterr()
    printed = captured.out + captured.err
    assert "Traceback" not in printed
    assert re.search(r"remedy: .{5}|not scored: 1 of 1 logs|has no episode header", printed), printed
