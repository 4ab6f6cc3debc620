"""``robot-runtime judge``: verdicts on visibility by a detector with known errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli import options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("judge")(judge)


def judge(
    logs: options.Logs,
    detector: Annotated[Path, typer.Option(help="Description of the detector.")],
    by: Annotated[Path, typer.Option(help="YAML of the calibrated judge.")],
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Write --by from logs of known truth: people's verdicts, or the simulator's object ids."
        ),
    ] = False,
) -> None:
    """Judge in ObjectNav logs whether the goal object was in view at the stop; scores say so and correct for errors.

    The judge weighs the detector's score and the measured points in the object's box, and abstains where both leave it
    unsure. Verdicts go into NAME.evidence.yaml beside each log; those of people count before them.

    Examples:
        robot-runtime judge logs/simulated --detector my_detector.yaml --by judge.yaml --calibrate
        robot-runtime judge logs/robot --detector my_detector.yaml --by judge.yaml
        robot-runtime score logs/robot
    """
    import yaml

    from robot_runtime.common import config
    from robot_runtime.common.console import console
    from robot_runtime.errors import ConfigError
    from robot_runtime.policies.detector import Detector
    from robot_runtime.recording.annotations import add_annotation
    from robot_runtime.scoring.summary import find_logs
    from robot_runtime.scoring.visibility_judge import JudgeFile, fit_judge, stop_facts

    network = Detector(detector)
    stops = [(log, found) for log in find_logs(logs) if (found := stop_facts(log, network)) is not None]
    if calibrate:
        known = [(facts, truth) for _, (facts, truth) in stops if truth is not None]
        made = fit_judge([facts for facts, _ in known], [truth for _, truth in known], network.digest)
        by.write_text(yaml.safe_dump(config.unparse(made), sort_keys=False), encoding="utf-8")
        judged = made.judge
        console.print(
            f"{by}: right in {judged.true_positives} of {judged.positives} positives and {judged.true_negatives} of "
            f"{judged.negatives} negatives, of {len(known)} stops",
            soft_wrap=True,
            markup=False,
        )
        return
    read = config.load(by, JudgeFile)
    if read.detector != network.digest:
        raise ConfigError(f"{by}: was calibrated with another detector than {detector}", "calibrate it again")
    verdicts = {log: read.judge.verdict(read.score(facts)) for log, (facts, _) in stops}
    for log, verdict in verdicts.items():
        add_annotation(log, f"judge {by.stem}", visible=verdict, judge=read.judge)
    counts = [sum(verdict is said for verdict in verdicts.values()) for said in (True, False, None)]
    console.print("visible in {}, not in {}, left open {}".format(*counts), soft_wrap=True, markup=False)
