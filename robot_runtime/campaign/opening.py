"""Opening of a campaign: its plan is checked and written into the ledger before anything moves, or compared with it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from robot_runtime.campaign.contents import FIELD, contents_of, episodes_sha256, parse_contents
from robot_runtime.campaign.counting import changed
from robot_runtime.campaign.ledger import Entry, Ledger, Sign
from robot_runtime.campaign.lines import RULES
from robot_runtime.campaign.plan import Plan, load_plan
from robot_runtime.campaign.schedule import EpisodeName
from robot_runtime.campaign.state import stored_plan
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.common.provenance import software
from robot_runtime.datasets.files import load_episodes
from robot_runtime.errors import ConfigError, OtherFloor
from robot_runtime.policies import check_source
from robot_runtime.recording.log_files import LEDGER_FILE
from robot_runtime.robots.loader import DeviceOverrides, read_robot_file
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.episode_check import check_episode

CAMPAIGNS = Path("campaigns")


def folder_of(plan: Plan, out: Path | None = None) -> Path:
    """The folder of a plan's campaign."""
    return CAMPAIGNS / plan.name if out is None else out


def located(path: Path) -> Path:
    """The folder of the campaign that a plan's file or a campaign's folder names. Raises ``ConfigError``."""
    return path if path.is_dir() else folder_of(load_plan(path))


def check_plan(plan: Plan) -> list[Episode]:
    """Check that everything that a plan names exists and fits, and return its episodes, with the goals of the scene.

    Raises:
        RuntimeFault: a missing or unfit task, scene, robot, policy or episode; a start or goal off the map.
    """
    task = plan.limited_task()
    for planned in plan.robots:
        read_robot_file(planned.robot, DeviceOverrides(planned.camera, planned.localizer, planned.referee))
    for policy in plan.policies.values():
        check_source(policy.source)
    episodes = load_episodes(Path(plan.episodes))[: plan.count]
    if not episodes:
        raise ConfigError(f"no episode in {plan.episodes}", "generate some with `robot-runtime episodes generate`")
    folders = [plan.scene(episode.scene) for episode in episodes]
    scenes = {folder: load_scene(find_scene(folder)) for folder in set(folders)}
    maps = {folder: GeodesicMap(scene.map, task.robot_radius_m) for folder, scene in scenes.items()}

    def checked(episode: Episode, folder: str) -> Episode | OtherFloor:
        try:
            return check_episode(task, scenes[folder], episode, maps[folder])
        except OtherFloor as error:
            return error

    found = list(map(checked, episodes, folders))
    elsewhere = [error for error in found if isinstance(error, OtherFloor)]
    if elsewhere:
        others = "".join(f"; {error.message.partition(', on another')[0]}" for error in elsewhere[1:])
        raise OtherFloor(elsewhere[0].message + others, f"leave them out of {plan.episodes}, or {elsewhere[0].remedy}")
    return [episode for episode in found if isinstance(episode, Episode)]


def open_campaign(
    plan: Plan,
    folder: Path,
    sign: Sign | None = None,
    tell: Callable[[str], None] = print,
    now: Callable[[], str] = utc_now_iso,
) -> Ledger:
    """Open the ledger of a plan's campaign: a new one begins with the plan, an old one must have the same.

    Raises:
        ConfigError: the plan differs from the ledger's, or another process runs the campaign.
        RuntimeFault: as :func:`check_plan` and :class:`Ledger`.
    """
    if bool(plan.signer) != (sign is not None):
        raise ConfigError(
            f"plan {plan.name!r} {'names a signer' if plan.signer else 'names no signer'}",
            "give --sign KEY where the plan names a signer, and only there",
        )
    names = None if (folder / LEDGER_FILE).is_file() else episode_names(plan)
    ledger = Ledger(folder, sign, now)
    try:
        if ledger.entries:
            check_same(plan, stored_plan(ledger.entries), folder)
            _check_same_contents(plan, ledger.entries)
            tell(f"{folder}: resumed after {len(ledger.entries)} lines of its ledger")
        else:
            names = names or episode_names(plan)
            ledger.append(
                "plan",
                plan=plan.document(),
                plan_sha256=plan.digest,
                episodes_sha256=episodes_sha256(plan),
                episodes=[[name.id, name.scene, name.key] for name in names],
                software=software(),
                contents=contents_of(plan, names).document(),
                rules=RULES,
            )
    except BaseException:
        ledger.close()
        raise
    return ledger


def check_same(plan: Plan, stored: Plan, folder: Path) -> None:
    """Raise ``ConfigError`` that names what differs between a plan and the one with which a campaign began."""
    if names := changed(plan.document(), stored.document()):
        raise ConfigError(
            f"plan {plan.name!r} was changed since its campaign began in {folder}: {', '.join(names)}",
            "run the plan as it was, or give the new one another name",
        )


def _check_same_contents(plan: Plan, entries: Sequence[Entry]) -> None:
    """Raise ``ConfigError`` that names what a plan names and is not what it was when its campaign began."""
    first = entries[0]
    if episodes_sha256(plan) != first.get("episodes_sha256"):
        raise ConfigError(f"{plan.episodes}: is not the file with which the campaign began", "restore that file")
    if first.get(FIELD) is None:
        return
    names = [EpisodeName(n, *listed) for n, listed in enumerate(first["episodes"])]
    then = parse_contents(first[FIELD], "line 1 of the ledger").document()
    differing = changed(contents_of(plan, names).document() | {"software": then["software"]}, then)
    if differing:
        raise ConfigError(
            f"plan {plan.name!r}: {', '.join(differing)}: the files are not those with which the campaign began",
            "restore them, or give the new plan another name",
        )


def episode_names(plan: Plan) -> list[EpisodeName]:
    """The plan's episodes by name. Raises as :func:`check_plan`."""
    return [EpisodeName(n, episode.id, episode.scene, episode.key) for n, episode in enumerate(check_plan(plan))]
