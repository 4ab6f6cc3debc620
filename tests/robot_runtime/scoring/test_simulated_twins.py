"""Real scores with simulated twins: pairing, order, tables and files."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from robot_runtime.errors import RecordingError
from robot_runtime.scoring.simulated_twins import table, with_simulation, write_estimates
from robot_runtime.scoring.summary import EpisodeScore


def score(key: str, success: bool, world: str = "real", agent: str = "a", created: str = "") -> EpisodeScore:
    return EpisodeScore(
        Path(f"{world}/{key}.mcap"),
        task="pointnav",
        agent=agent,
        key=key,
        metrics={"success": success, "spl": 0.8 * success, "collisions": 3},
        provenance={"created": created},
    )


def worlds(count: int = 40, each: int = 10) -> tuple[list[EpisodeScore], list[EpisodeScore]]:
    """Real episodes, and simulated ones with the same outcome in 9 of 10 cases, and further ones."""
    random = np.random.default_rng(0)
    outcomes = random.random(count * (1 + each)) < 0.6
    agree = random.random(count) < 0.9
    real = [score(str(i), bool(outcomes[i]), created=f"2026-01-01T00:00:{i:02d}") for i in range(count)]
    twins = [bool(one == same) for one, same in zip(outcomes[:count], agree, strict=True)]
    simulated = [score(str(i), bool(one), "sim") for i, one in enumerate([*twins, *outcomes[count:]])]
    return real, simulated


def test_pairs_episodes_and_narrows_the_interval() -> None:
    real, simulated = worlds()
    (found,) = with_simulation(real, simulated)
    assert (found.task, found.agent) == ("pointnav", "a")
    assert found.metrics.keys() == {"success", "spl"}
    success = found.metrics["success"]
    assert (success.real, success.twins, success.further) == (40, 40, 10)
    assert success.correlation > 0.6
    assert success.adjusted.high - success.adjusted.low < 0.85 * (success.without.high - success.without.low)


def test_the_order_of_the_runs_counts_not_that_of_the_files() -> None:
    real, simulated = worlds()
    assert with_simulation(real[::-1], simulated) == with_simulation(real, simulated)


def test_runs_of_one_episode_are_averaged_and_unscored_ones_left_out() -> None:
    real, simulated = worlds()
    broken = EpisodeScore(Path("sim/x.mcap"), reason="torn", task="pointnav", agent="a", key="0")
    assert with_simulation(real, [*simulated, *simulated, broken]) == with_simulation(real, simulated)


def test_planned_episodes_leave_starts_for_later_ones() -> None:
    (found,) = with_simulation(*worlds(), planned=100)
    assert found.metrics["success"].further == 4


def test_without_a_twin_there_is_nothing_to_say() -> None:
    real, simulated = worlds()
    with pytest.raises(RecordingError, match="real are a on pointnav; simulated are none"):
        with_simulation(real, [])
    with pytest.raises(RecordingError, match="simulated are b on pointnav"):
        with_simulation(real, [score(one.key, True, "sim", "b") for one in simulated])


def test_table_and_file(tmp_path: Path) -> None:
    estimates = with_simulation(*worlds())
    out = StringIO()
    Console(file=out, width=100).print(table(estimates))
    assert "40 real episodes, 40 of them simulated, 10 further simulated per real one" in out.getvalue()
    assert "with simulation" in out.getvalue()
    write_estimates(tmp_path / "estimates.json", estimates)
    (written,) = json.loads((tmp_path / "estimates.json").read_text())["estimates"]
    assert written["metrics"]["success"]["real"] == 40
    few = StringIO()
    Console(file=few, width=100).print(table(with_simulation(*worlds(each=0))))
    assert "simulation is not used" in few.getvalue()
