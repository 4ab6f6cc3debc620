"""``robot-runtime verdict judge``: verdicts on visibility by a detector with known errors."""

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.common.creating import creating


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["verdict"].command("judge")(judge)


def judge(
    logs: options.Logs,
    detector: Annotated[Path, typer.Option(help="Description of the detector.")],
    judge: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML of the calibrated judge.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Instead: calibrate a judge by what people's verdicts or the simulator's object ids say, and write it."
        ),
    ] = None,
) -> None:
    """Judge in ObjectNav logs whether the goal object was in view at the stop; scores say so and correct for errors.

    The judge weighs the detector's score and the measured points in the object's box, and abstains where both leave it
    unsure. Verdicts are written to NAME.evidence.yaml next to each log; verdicts of people take precedence.

    Examples:
        robot-runtime verdict judge logs/simulated --detector my_detector.yaml --out judge.yaml
        robot-runtime verdict judge logs/robot --detector my_detector.yaml --judge judge.yaml
        robot-runtime score logs/robot
    """
    from robot_runtime.common import config
    from robot_runtime.common.console import say
    from robot_runtime.common.yaml_text import dump_yaml
    from robot_runtime.errors import ConfigError
    from robot_runtime.policies.detector import Detector
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.recording.verdict_files import add_verdict
    from robot_runtime.task_kinds.objectnav.visibility_judge import JudgeFile, fit_judge, stop_facts

    if (judge is None) == (out is None):
        raise ConfigError(
            "judge needs one of --judge and --out", "give --judge to judge, or --out to calibrate a judge"
        )
    network = Detector(detector)
    stops = [(log, facts) for log in find_logs(logs) if (facts := stop_facts(log, network)) is not None]
    if out is not None:
        known = [(facts, truth) for _, (facts, truth) in stops if truth is not None]
        made = fit_judge([facts for facts, _ in known], [truth for _, truth in known], network.digest)
        with creating(out) as draft:
            draft.write_text(dump_yaml(config.unparse(made)), encoding="utf-8")
        judged = made.judge
        say(
            f"{out}: right in {judged.true_positives} of {judged.positives} positives and {judged.true_negatives} of "
            f"{judged.negatives} negatives, of {len(known)} stops"
        )
        return
    assert judge is not None
    read = config.load(judge, JudgeFile)
    if read.detector != network.digest:
        raise ConfigError(f"{judge}: was calibrated with another detector than {detector}", "calibrate it again")
    verdicts = {log: read.judge.verdict(read.score(facts)) for log, (facts, _) in stops}
    for log, verdict in verdicts.items():
        add_verdict(log, f"judge {judge.stem}", visible=verdict, judge=read.judge)
    counts = [sum(verdict is said for verdict in verdicts.values()) for said in (True, False, None)]
    say("visible in {}, not in {}, left open {}".format(*counts))
