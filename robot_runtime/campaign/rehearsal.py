"""Rehearsal of a campaign in simulation: blind, killed and resumed on the way, verified from a copy, reported."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path

from robot_runtime.campaign.ledger import read_ledger
from robot_runtime.campaign.plan import Plan, PlannedRobot
from robot_runtime.campaign.sealing import seal
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import ConfigError, DeviceFault, writing
from robot_runtime.recording.log_files import LEDGER_FILE

START_S = 600.0
RUN_S = 24 * 3600.0


def rehearse(plan: Plan, out: Path, robot: str, first_port: int, tell: Callable[[str], None]) -> Path:
    """Rehearse a plan with all that can go wrong with its process, each step by the command that a person would use.

    The plan is sealed, its policies run in a process of their own, the campaign's process is killed in the first run
    after its first start and started again, a copy is verified, and the policies are unblinded.

    Returns:
        The campaign's folder.

    Raises:
        ConfigError: the folder exists.
        DeviceFault: a step failed.
    """
    if out.exists():
        raise ConfigError(f"{out}: exists", "give a new folder")
    with writing(out):
        out.mkdir(parents=True)
    robots = tuple(PlannedRobot(robot) for _ in plan.robots)
    key, sealed, campaign, copy = (out / name for name in ("key.yaml", "plan.yaml", "campaign", "copy"))
    public = seal(replace(plan, robots=robots, judging=replace(plan.judging, judges=0)), key, first_port=first_port)
    with writing(sealed):
        sealed.write_text(dump_yaml(public.document()), encoding="utf-8")
    tell(f"sealed: {', '.join(public.policies)}; only {key} states who they are")
    with _served(key, first_port, len(public.policies)):
        run = _start("run", sealed, "--out", campaign)
        running = _first_run_after_a_start(run, campaign)
        os.kill(run.pid, signal.SIGKILL)
        printed, _ = run.communicate()
        if running:
            tell(f"killed the campaign's process during run {running}, and started it again")
            run = _start("run", sealed, "--out", campaign)
            printed, _ = run.communicate(timeout=RUN_S)
        if run.returncode:
            raise _failure(run, printed)
        tell(printed.strip().splitlines()[-1])
    shutil.copytree(campaign, copy)
    for arguments in (
        ("verify", copy, "--plan", sealed, "--json", out / "result.json"),
        ("unblind", campaign, "--key", key),
    ):
        done = _start(*arguments)
        printed, _ = done.communicate(timeout=RUN_S)
        if done.returncode:
            raise _failure(done, printed)
        tell(printed.strip())
    return campaign


def _start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "robot_runtime", "campaign", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextmanager
def _served(key: Path, first_port: int, count: int) -> Iterator[None]:
    """The process that has the key and runs the policies."""
    server = _start("serve", key, "--port", str(first_port))
    assert server.stdout is not None
    try:
        first = server.stdout.readline()
        if not first.startswith(f"serving {count}"):
            said = first + server.stdout.read()
            raise DeviceFault(
                f"the policies cannot be served: {said.strip()}", "where their ports are taken, give others with --port"
            )
        yield
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def _first_run_after_a_start(run: subprocess.Popen[str], campaign: Path) -> str:
    """Wait for the run that begins after the first start has finished; empty if the campaign's process ends before."""

    def name() -> str | None:
        ended = run.poll() is not None
        entries = read_ledger(campaign) if (campaign / LEDGER_FILE).is_file() else []
        later = dropwhile(lambda entry: entry.kind != "decision", entries)
        return next((entry["attempt"] for entry in later if entry.kind == "begun"), "" if ended else None)

    running = wait_for(SystemClock(), name, START_S, 0.05)
    if running is None:
        raise _failure(run)
    return running


def _failure(process: subprocess.Popen[str], printed: str = "") -> DeviceFault:
    if process.poll() is None:
        process.kill()
    rest = printed or process.communicate()[0]
    command = " ".join(map(str, list(process.args)[3:5]))  # type: ignore[arg-type]
    return DeviceFault(f"`robot-runtime {command}` failed: {rest.strip()[-500:]}", "run the command by itself")
