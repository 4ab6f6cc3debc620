"""Journals of results: finished items are not computed again, and results of other settings are refused."""

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
from raising import raises_naming
from synthetic import FORWARD, STOP
from work_functions import DEADLY, square_or_die

from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.settings import Rules
from robot_runtime.parallel.map import ONE, Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.scoring.score_journal import score_journal
from robot_runtime.scoring.summary import score_logs


def journal(path: Path, overwrite: bool = False, **depends: Any) -> ResultJournal[int, int]:
    return ResultJournal(path, depends, str, lambda result: result, int, overwrite)


def work(stored: ResultJournal[int, int], count: int, done: list[int]) -> Iterator[int]:
    """Squares; ``done`` are the items whose results were made."""

    def square(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            done.append(number)
            yield number * number

    return map_in_order(square, range(count), ONE, lambda *_: 0, journal=stored)


def test_a_repeated_command_does_what_is_left(tmp_path: Path) -> None:
    done: list[int] = []
    with journal(tmp_path / "l") as stored:
        results = work(stored, 9, done)
        assert [next(results) for _ in range(4)] == [0, 1, 4, 9]
    with journal(tmp_path / "l") as stored:
        assert [item for item in range(9) if stored.has(item)] == [0, 1, 2, 3]
        assert list(work(stored, 9, done)) == [n * n for n in range(9)]
        assert list(work(stored, 9, done)) == [n * n for n in range(9)]
    assert done == list(range(9))


def test_a_journal_may_have_other_items(tmp_path: Path) -> None:
    done: list[int] = []
    with journal(tmp_path / "l") as stored:
        list(work(stored, 3, done))
        assert list(map_in_order(lambda items: iter([n * n for n in items]), [7, 1, 9], ONE, max, journal=stored)) == [
            49,
            1,
            81,
        ]


def test_a_lost_item_is_tried_again(tmp_path: Path) -> None:
    def lost(number: int, how: WorkerLoss) -> int:
        return -number

    with journal(tmp_path / "l") as stored:
        options: dict[str, Any] = {"batch_size": 4, "retries": 0, "journal": stored}
        results = list(map_in_order(square_or_die, range(25), Workers(2), lost, **options))
        assert results == [-n if n in DEADLY else n * n for n in range(25)]
        assert [n for n in range(25) if not stored.has(n)] == list(DEADLY)


@settings(max_examples=30)
@given(cut=st.integers(0, 400))
def test_a_file_torn_anywhere_keeps_its_whole_lines(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("torn") / "l"
    with journal(path, noise=1) as stored:
        list(work(stored, 9, []))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    with journal(path, noise=1) as stored:
        assert sum(map(stored.has, range(9))) == max(0, whole[:cut].count(b"\n") - 1)
        assert list(work(stored, 9, [])) == [n * n for n in range(9)]
    assert path.read_bytes() == whole


def test_other_settings_are_refused_unless_the_file_is_overwritten(tmp_path: Path) -> None:
    with journal(tmp_path / "l", noise=1, scene="lab") as stored:
        list(work(stored, 3, []))
    with raises_naming(ConfigError, tmp_path / "l", "noise 1", "2 here") as raised:
        journal(tmp_path / "l", noise=2, scene="lab")
    assert "scene" not in raised.value.message
    assert "--overwrite" in raised.value.remedy
    with journal(tmp_path / "l", overwrite=True, noise=2, scene="lab") as stored:
        assert not any(map(stored.has, range(9)))


@pytest.mark.parametrize("text", ["", '{"a": 1}\n', "[1]\n", "no ledger", '{"ledger":99,"settings":{}}\n'])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, text: str, overwrite: bool) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text, encoding="utf-8")
    if not text:
        journal(path).close()  # an empty file may be used
        return
    with raises_naming(ConfigError, path):
        journal(path, overwrite)
    assert path.read_text(encoding="utf-8") == text


def test_a_damaged_line_is_reported_with_its_number(tmp_path: Path) -> None:
    with journal(tmp_path / "l") as stored:
        list(work(stored, 3, []))
    lines = (tmp_path / "l").read_text(encoding="utf-8").splitlines()
    (tmp_path / "l").write_text("\n".join([*lines[:2], "\0\0", lines[3]]) + "\n", encoding="utf-8")
    with raises_naming(RecordingError, tmp_path / "l", "line 3"):
        journal(tmp_path / "l")


def test_two_commands_cannot_share_a_journal(tmp_path: Path) -> None:
    with journal(tmp_path / "l"), raises_naming(ConfigError, tmp_path / "l"):
        journal(tmp_path / "l")


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with raises_naming(RecordingError, tmp_path / "no" / "l", "No such file"):
        journal(tmp_path / "no" / "l")
    with raises_naming(ConfigError, "/dev/null"):
        journal(Path("/dev/null"))


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
        with score_journal(tmp_path / "l", Rules()) as stored:
            made = score_logs(logs, journal=stored)
        with score_journal(tmp_path / "l", Rules()) as stored:
            assert all(map(stored.has, logs))
            assert score_logs(logs, journal=stored) == made == score_logs(logs)

    def test_scores_without_todays_fields_are_refused(self, tmp_path: Path) -> None:
        with score_journal(tmp_path / "l", Rules()):
            pass
        before = (tmp_path / "l").read_text(encoding="utf-8")
        (tmp_path / "l").write_text(before.replace('"localizer",', ""), encoding="utf-8")
        with raises_naming(ConfigError, tmp_path / "l"), score_journal(tmp_path / "l", Rules()):
            pass

    def test_a_log_without_a_score_and_one_that_changed_are_scored_again(self, tmp_path: Path, record) -> None:
        good = record(synthetic.header(), [FORWARD] * 2 + [STOP])
        bad = good.with_name("bad.mcap")
        bad.write_bytes(b"no log")
        with score_journal(tmp_path / "l", Rules()) as stored:
            assert [score.scorable for score in score_logs([good, bad], journal=stored)] == [True, False]
            assert [stored.has(good), stored.has(bad)] == [True, False]
            bad.write_bytes(good.read_bytes())
            assert [score.scorable for score in score_logs([good, bad], journal=stored)] == [True, True]
            os.utime(good, ns=(1, 1))
            assert not stored.has(good)

    def test_the_command_reports_the_finished_logs(self, tmp_path: Path, record, capsys) -> None:
        logs = record(synthetic.header(), [FORWARD] * 2 + [STOP]).parent
        printed = []
        for name in ("a.json", "b.json"):
            command = ["score", str(logs), "--ledger", str(tmp_path / "l.jsonl"), "--json", str(tmp_path / name)]
            assert run_command(command) == 0
            printed.append(capsys.readouterr().err)
        assert ["0 of 1 are done already" in printed[0], "1 of 1 are done already" in printed[1]] == [True, True]
        assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
        assert run_command([*command, "--ignore-verdicts"]) == 2
        assert 'verdicts "use" there, "ignore" here' in capsys.readouterr().err
        assert json.loads((tmp_path / "l.jsonl").read_text().splitlines()[0])["settings"]["results"] == "scores"
