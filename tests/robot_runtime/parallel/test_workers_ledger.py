"""What was finished is not done again, whatever ended the work; and never taken for what it is not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FORWARD, STOP
from work_functions import DEADLY, square_or_die

from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.settings import Rules
from robot_runtime.parallel.checkpoint import Ledger, file_key
from robot_runtime.parallel.engine import Lost
from robot_runtime.parallel.map import ONE, Workers, map_in_order
from robot_runtime.scoring.score_ledger import score_ledger
from robot_runtime.scoring.summary import score_logs


def ledger(path: Path, overwrite: bool = False, **depends: Any) -> Ledger[int, int]:
    return Ledger(path, depends, str, lambda result: result, int, overwrite)


def work(kept: Ledger[int, int], count: int, done: list[int]) -> Iterator[int]:
    """Squares; ``done`` are the items whose results were made."""

    def square(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            done.append(number)
            yield number * number

    return map_in_order(square, range(count), ONE, lambda *_: 0, ledger=kept)


def test_a_repeated_command_does_what_is_left(tmp_path: Path) -> None:
    done: list[int] = []
    with ledger(tmp_path / "l") as kept:
        results = work(kept, 9, done)
        assert [next(results) for _ in range(4)] == [0, 1, 4, 9]
    with ledger(tmp_path / "l") as kept:
        assert [item for item in range(9) if kept.has(item)] == [0, 1, 2, 3]
        assert list(work(kept, 9, done)) == [n * n for n in range(9)]
        assert list(work(kept, 9, done)) == [n * n for n in range(9)]
    assert done == list(range(9))


def test_a_ledger_may_have_other_items(tmp_path: Path) -> None:
    done: list[int] = []
    with ledger(tmp_path / "l") as kept:
        list(work(kept, 3, done))
        assert list(map_in_order(lambda items: iter([n * n for n in items]), [7, 1, 9], ONE, max, ledger=kept)) == [
            49,
            1,
            81,
        ]


def test_what_was_lost_is_tried_again(tmp_path: Path) -> None:
    def lost(number: int, how: Lost) -> int:
        return -number

    with ledger(tmp_path / "l") as kept:
        options: dict[str, Any] = {"chunk": 4, "retries": 0, "ledger": kept}
        results = list(map_in_order(square_or_die, range(25), Workers(2), lost, **options))
        assert results == [-n if n in DEADLY else n * n for n in range(25)]
        assert [n for n in range(25) if not kept.has(n)] == list(DEADLY)


@settings(max_examples=30)
@given(cut=st.integers(0, 400))
def test_a_file_torn_anywhere_keeps_its_whole_lines(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("torn") / "l"
    with ledger(path, noise=1) as kept:
        list(work(kept, 9, []))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    with ledger(path, noise=1) as kept:
        assert sum(map(kept.has, range(9))) == max(0, whole[:cut].count(b"\n") - 1)
        assert list(work(kept, 9, [])) == [n * n for n in range(9)]
    assert path.read_bytes() == whole


def test_other_settings_are_refused_by_name_unless_it_is_to_begin_anew(tmp_path: Path) -> None:
    with ledger(tmp_path / "l", noise=1, scene="lab") as kept:
        list(work(kept, 3, []))
    with pytest.raises(ConfigError, match=r"holds results of other settings: noise 1 there, 2 here\n") as raised:
        ledger(tmp_path / "l", noise=2, scene="lab")
    assert "--overwrite" in raised.value.remedy
    with ledger(tmp_path / "l", overwrite=True, noise=2, scene="lab") as kept:
        assert not any(map(kept.has, range(9)))


@pytest.mark.parametrize("text", ["", '{"a": 1}\n', "[1]\n", "no ledger", '{"ledger":99,"settings":{}}\n'])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, text: str, overwrite: bool) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text, encoding="utf-8")
    if not text:
        ledger(path).close()  # an empty file is anybody's
        return
    with pytest.raises(ConfigError, match=r"scores.json: is no ledger"):
        ledger(path, overwrite)
    assert path.read_text(encoding="utf-8") == text


def test_a_damaged_line_is_told_by_its_number(tmp_path: Path) -> None:
    with ledger(tmp_path / "l") as kept:
        list(work(kept, 3, []))
    lines = (tmp_path / "l").read_text(encoding="utf-8").splitlines()
    (tmp_path / "l").write_text("\n".join([*lines[:2], "\0\0", lines[3]]) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="line 3 is damaged"):
        ledger(tmp_path / "l")


def test_two_commands_do_not_share_one(tmp_path: Path) -> None:
    with ledger(tmp_path / "l"), pytest.raises(ConfigError, match="another command is writing it"):
        ledger(tmp_path / "l")


def test_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="l: cannot be written: No such file"):
        ledger(tmp_path / "no" / "l")
    with pytest.raises(ConfigError, match="is not a file"):
        ledger(Path("/dev/null"))


def test_a_file_that_changed_has_another_key(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a", encoding="utf-8")
    before = file_key(path)
    assert file_key(path) == before
    path.write_text("ab", encoding="utf-8")
    assert file_key(path) != before


class TestScores:
    def test_scores_come_back_as_they_were(self, tmp_path: Path, record) -> None:
        logs = [
            record(synthetic.header(seed=0), [FORWARD] * 2 + [STOP]),
            record(synthetic.header(synthetic.objectnav_task()), [FORWARD, STOP]),
        ]
        with score_ledger(tmp_path / "l", Rules()) as kept:
            made = score_logs(logs, ledger=kept)
        with score_ledger(tmp_path / "l", Rules()) as kept:
            assert all(map(kept.has, logs))
            assert score_logs(logs, ledger=kept) == made == score_logs(logs)

    def test_a_log_without_a_score_and_one_that_changed_are_scored_again(self, tmp_path: Path, record) -> None:
        good = record(synthetic.header(), [FORWARD] * 2 + [STOP])
        bad = good.with_name("bad.mcap")
        bad.write_bytes(b"no log")
        with score_ledger(tmp_path / "l", Rules()) as kept:
            assert [score.scorable for score in score_logs([good, bad], ledger=kept)] == [True, False]
            assert [kept.has(good), kept.has(bad)] == [True, False]
            bad.write_bytes(good.read_bytes())
            assert [score.scorable for score in score_logs([good, bad], ledger=kept)] == [True, True]
            os.utime(good, ns=(1, 1))
            assert not kept.has(good)

    def test_the_command_says_what_is_done(self, tmp_path: Path, record, capsys) -> None:
        logs = record(synthetic.header(), [FORWARD] * 2 + [STOP]).parent
        said = []
        for name in ("a.json", "b.json"):
            command = ["score", str(logs), "--ledger", str(tmp_path / "l.jsonl"), "--json", str(tmp_path / name)]
            assert run_command(command) == 0
            said.append(capsys.readouterr().err)
        assert ["0 of 1 are done already" in said[0], "1 of 1 are done already" in said[1]] == [True, True]
        assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
        assert run_command([*command, "--ignore-evidence"]) == 2
        assert 'evidence "use" there, "ignore" here' in capsys.readouterr().err
        assert json.loads((tmp_path / "l.jsonl").read_text().splitlines()[0])["settings"]["results"] == "scores"
