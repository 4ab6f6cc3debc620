"""Ledger of a single run: which of its episodes have a log that counts, so that a killed run resumes.

It is a campaign's ledger in the folder of the run's logs, with the campaign's rules: an episode is written down before
the robot moves and after its log is closed; one that was killed, interrupted, or ended by a fault of a device or of
the localization is run again. The log of such an episode is set aside under another name, and never deleted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typing_extensions import Self

from robot_runtime.campaign.counting import Counting, Kind, changed, digest, kind_of
from robot_runtime.campaign.ledger import Entry, Ledger
from robot_runtime.common.provenance import software
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.log_files import LEDGER_FILE
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import verdicts_path


class RunLedger:
    """Ledger of a single run; a context.

    It is read when it is made, and written from the first episode on.

    Attributes:
        logs: names of the logs that count, by the episode's number.

    Raises:
        ConfigError: the settings are not those with which the run began, or another process runs it.
        RecordingError: the ledger was altered, or there are logs that it does not name.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], episodes: Sequence[str], tell: Callable[[str], None]
    ) -> None:
        self._folder, self._tell, self._count = folder, tell, len(episodes)
        self._settings = {name: digest(plain(value)) for name, value in {**settings, "episodes": episodes}.items()}
        self._ledger: Ledger | None = None
        self.logs: dict[int, str] = {}
        if (folder / LEDGER_FILE).is_file():
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ledger is not None:
            self._ledger.close()

    @property
    def left(self) -> list[int]:
        """Numbers of the episodes without a log that counts."""
        return [number for number in range(self._count) if number not in self.logs]

    @contextmanager
    def episode(self, number: int) -> Iterator[None]:
        """The context of an episode, whose log is closed at the end. Raises ``RecordingError``."""
        ledger = self._ledger or self._open()
        begun = ledger.append("begun", episode=number)
        try:
            yield
        finally:
            self._end(ledger, begun)

    def _open(self) -> Ledger:
        ledger = self._ledger = Ledger(self._folder)
        try:
            if ledger.entries:
                self._go_on(ledger)
            else:
                ledger.append("run", settings=self._settings, software=software())
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _go_on(self, ledger: Ledger) -> None:
        first = ledger.entries[0]
        if first.kind != "run":
            raise ConfigError(f"no single run in {self._folder}", "give its folder, or `robot-runtime campaign run`")
        if differing := changed(self._settings, first["settings"]):
            raise ConfigError(
                f"{self._folder}: the run began with other settings: {', '.join(differing)}",
                "repeat the command as it was, or give another --out",
            )
        for begun in [entry for entry in ledger.entries if entry.kind == "begun"]:
            if not any(entry.get("begun") == begun.n for entry in ledger.entries):
                self._end(ledger, begun)
        for ended in _in_place(ledger):
            self._settle(ledger, ended)
        if unknown := self._unknown(ledger):
            raise RecordingError(f"{unknown[0]}: is not of this run", "move it elsewhere, or give another --out")
        self._tell(f"{self._folder}: resumed, {len(self.logs)} of {self._count} episodes are done")

    def _settle(self, ledger: Ledger, ended: Entry) -> None:
        """Count the log of an episode, or set it aside."""
        path = self._folder / ended["log"]
        if _is_void(ended["what"]):
            aside = path.with_name(f"{path.stem}.aborted-{ended.n}")
            for old, new in ((path, aside), (verdicts_path(path), verdicts_path(aside))):
                if old.exists():
                    with writing(new, "make the folder writable"):
                        old.rename(new)
            ledger.append("set_aside", ended=ended.n, log=aside.name)
        elif path.is_file():
            self.logs[ended["episode"]] = ended["log"]
        else:
            self._tell(f"{path}: is missing, its episode is run again")

    def _end(self, ledger: Ledger, begun: Entry) -> None:
        """Write down how an episode ended, by its log."""
        logs = self._unknown(ledger)
        end, what = _read_end(logs[-1]) if logs else (None, None)
        name = logs[-1].name if logs else None
        ledger.append("ended", begun=begun.n, episode=begun["episode"], log=name, end=end, what=what)
        if name is not None and not _is_void(what):
            self.logs[begun["episode"]] = name

    def _unknown(self, ledger: Ledger) -> list[Path]:
        """Logs that the ledger does not name."""
        known = {ended["log"] for ended in _in_place(ledger)}
        return [path for path in sorted(self._folder.glob("*.mcap")) if path.name not in known]


def _is_void(what: Kind | None) -> bool:
    """Whether an episode that ended so is run again."""
    return what is not None and Counting().repeated([what]) is not None


def _in_place(ledger: Ledger) -> list[Entry]:
    """The ``ended`` lines whose logs are where they were written."""
    moved = {entry["ended"] for entry in ledger.entries if entry.kind == "set_aside"}
    return [
        entry for entry in ledger.entries if entry.kind == "ended" and entry["log"] is not None and entry.n not in moved
    ]


def _read_end(log: Path) -> tuple[str | None, Kind | None]:
    """Reason of a log's end, and the intervention or fault that it was."""
    try:
        with LogReader(log) as reader:
            end = reader.end
    except RecordingError:
        return None, "damaged"
    return (None, "killed") if end is None else (end.reason.value, kind_of(end))
