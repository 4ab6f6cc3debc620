"""Recorder of episodes: one MCAP file each, written during the episode in a thread of its own.

* No record is dropped: if the disk or the compressor is too slow, the loop waits for a bounded time.
* No error is lost: one in the thread (disk full) is raised by the next ``on_*`` call and by ``on_episode_end``.
* No file is overwritten: an episode gets the next free number of the folder.
* No log is lost unnoticed: a folder or file that is deleted or moved away meanwhile is an error.
* A killed process loses at most the step that it was writing, and base states of the last half second.
"""

import os
import queue
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from typing_extensions import override

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.closing import Closing
from robot_runtime.errors import RecordingError
from robot_runtime.hal import BaseState, PoseEstimate
from robot_runtime.hal.events import Event
from robot_runtime.hal.streams import STREAMS
from robot_runtime.recording.log_writer import LogWriter
from robot_runtime.records import EpisodeEnd, EpisodeHeader, SentCommand, StepRecord, Subscriber

_QUEUED_STEPS = 8  # 18 MB of 640x480 frames
_QUEUED_JOBS = 1024
_STATES_PER_JOB = 5  # a quarter of a second
_IDLE_S = 0.5
_POLL_S = 0.1
_BASE_PERIOD_NS = round(NS_PER_S / STREAMS["base"].log_rate_hz)

Job = Callable[[LogWriter], None]


class Recorder(Subscriber, Closing):
    """Recorder of all episodes of a loop, for use in one thread.

    Args:
        folder: folder of the logs, created with the first episode if missing.
        timeout_s: longest wait for the disk in seconds, during and at the end of an episode.
        open_log: function that makes the file; a parameter for tests with failing disks.

    Attributes:
        path: the newest episode's file; None before the first.

    Raises:
        RecordingError: from every ``on_*`` method. The episode's file is then closed and readable as far as it was
            written; the rest of that episode is refused with the same error.
    """

    def __init__(
        self,
        folder: Path | str,
        timeout_s: float = 60.0,
        open_log: Callable[[Path, EpisodeHeader], LogWriter] = LogWriter,
    ) -> None:
        self.folder = Path(folder)
        self._timeout_s = timeout_s
        self._open_log = open_log
        self._episode: _EpisodeThread | None = None
        self.path: Path | None = None

    @override
    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.close()
        try:
            if self.path is None:
                self.folder.mkdir(parents=True, exist_ok=True)
            taken = (re.match(r"(\d+)_", path.name) for path in self.folder.glob("*.mcap"))
            index = max((int(match[1]) for match in taken if match), default=-1) + 1
            name = f"{index:04d}_{_safe(header.scene.name)}_{_safe(header.episode.id)}.mcap"
            self.path = self.folder / name
            log = self._open_log(self.path, header)
        except OSError as error:
            raise _recording_error(self.path or self.folder, error) from error
        self._episode = _EpisodeThread(self.path, log, self._timeout_s)
        self._episode.put(LogWriter.write_header)

    @override
    def on_step(self, record: StepRecord) -> None:
        episode = self._current()
        episode.put_commands()
        episode.put_step(lambda log: log.write_step(record))

    @override
    def on_base_state(self, state: BaseState) -> None:
        self._current().put_base_state(state)

    @override
    def on_command(self, command: SentCommand) -> None:
        self._current().commands.append(command)

    @override
    def on_event(self, event: Event) -> None:
        self._current().put(lambda log: log.write_event(event))

    @override
    def on_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        if estimates:
            self._current().put(lambda log: log.write_poses(source, estimates))

    @override
    def on_episode_end(self, end: EpisodeEnd) -> None:
        episode = self._current()
        self._episode = None
        episode.finish(end)

    def close(self) -> None:
        """Close the file of an episode without an end; it has no end record. May be called twice.

        Raises:
            RecordingError: as ``on_episode_end``.
        """
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.finish(None)

    def _current(self) -> "_EpisodeThread":
        if self._episode is None:
            raise RecordingError("no episode is being recorded", "call on_episode_start first")
        return self._episode


class _EpisodeThread:
    """One file, the thread that writes it, and the queue of its jobs."""

    def __init__(self, path: Path, log: LogWriter, timeout_s: float) -> None:
        self._path = path
        self._log = log
        self._timeout_s = timeout_s
        self._jobs: queue.Queue[Job | None] = queue.Queue(_QUEUED_JOBS)
        self._step_slots = threading.BoundedSemaphore(_QUEUED_STEPS)
        self._error: RecordingError | None = None
        self._done = False
        self._base_states: list[BaseState] = []
        self._last_base_state: BaseState | None = None
        self._base_states_lock = threading.Lock()
        self.commands: list[SentCommand] = []
        """Sent since the last step."""
        self._thread = threading.Thread(target=self._run, name=f"recorder {path.name}")
        self._thread.start()

    # --- the loop's side ---

    def put(self, job: Job | None) -> None:
        """Queue a job, behind the base states before it; waits while the queue is full."""
        self._put_base_states()
        self._put(job)

    def _put(self, job: Job | None) -> None:
        waited_s = 0.0
        while True:
            self._check()
            try:
                self._jobs.put(job, timeout=_POLL_S)
                return
            except queue.Full:
                waited_s = self._wait_on(waited_s)

    def put_step(self, job: Job) -> None:
        """Queue a step; waits while ``_QUEUED_STEPS`` of them are pending."""
        waited_s = 0.0
        self._check()
        while not self._step_slots.acquire(timeout=_POLL_S):
            self._check()
            waited_s = self._wait_on(waited_s)

        def write(log: LogWriter) -> None:
            try:
                job(log)
            finally:
                self._step_slots.release()

        self.put(write)

    def put_commands(self) -> None:
        """Queue the commands since the last step, if any."""
        commands, self.commands = self.commands, []
        if commands:
            self.put(lambda log: log.write_commands(commands))

    def put_base_state(self, state: BaseState) -> None:
        """Queue a base state if it is due, together with a few others: each job wakes the thread."""
        if _is_due(state, self._last_base_state):
            self._last_base_state = state
            self._check()
            with self._base_states_lock:
                self._base_states.append(state)
                full = len(self._base_states) >= _STATES_PER_JOB
            if full:
                self._put_base_states()
        elif self._error is not None:
            self._check()

    def _put_base_states(self) -> None:
        if states := self._take_base_states():
            self._put(lambda log: _write_base_states(log, states))

    def _take_base_states(self) -> list[BaseState]:
        """The base states that no job has yet; for both threads."""
        with self._base_states_lock:
            states, self._base_states = self._base_states, []
        return states

    def finish(self, end: EpisodeEnd | None) -> None:
        """Write the queue, then ``end``, and close the file. Raises ``RecordingError``."""
        self.put_commands()
        if end is not None:
            self.put(lambda log: log.write_end(end))
        if self._thread.is_alive():
            self.put(None)
        self._thread.join(self._timeout_s)
        if self._thread.is_alive():
            raise self._too_slow()
        if not self._done:
            raise self._error or self._thread_died()

    def _check(self) -> None:
        if self._error is not None:
            self._thread.join(self._timeout_s)
            raise self._error
        if not self._thread.is_alive():
            raise self._thread_died()

    def _wait_on(self, waited_s: float) -> float:
        if waited_s >= self._timeout_s:
            raise self._too_slow()
        return waited_s + _POLL_S

    def _thread_died(self) -> RecordingError:
        return RecordingError(f"{self._path}: the recorder's thread has stopped", "see the traceback that it printed")

    def _too_slow(self) -> RecordingError:
        return RecordingError(
            f"{self._path}: the disk accepted no data for {self._timeout_s:g} s",
            "record to a faster or healthy disk (--out)",
        )

    # --- the thread's side ---

    def _run(self) -> None:
        try:
            try:
                self._drain()
                self._log.finish()
            finally:
                self._log.close()
            self._done = True
        except OSError as error:
            self._error = _recording_error(self._path, error)
        except (TypeError, ValueError) as error:
            self._error = RecordingError(
                f"{self._path}: a record cannot be written: {error}",
                "policy_info, robot_config and provenance may hold numbers, text, lists and dictionaries only",
            )

    def _drain(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_S)
            except queue.Empty:
                _write_base_states(self._log, self._take_base_states())
                self._log.idle()
                # The program ended without ending the episode: there will be no further jobs.
                if not threading.main_thread().is_alive():
                    return
                continue
            if job is None:
                return
            job(self._log)


def _write_base_states(log: LogWriter, states: Sequence[BaseState]) -> None:
    for state in states:
        log.write_base_state(state)


def _is_due(state: BaseState, last: BaseState | None) -> bool:
    """Whether a base state is written after the last one: by ``STREAMS``, and at a change of contact, drop or halt."""
    return (
        last is None
        or state.stamp_ns - last.stamp_ns >= _BASE_PERIOD_NS
        or (state.bumper, state.cliff, state.wheel_drop, state.halt)
        != (last.bumper, last.cliff, last.wheel_drop, last.halt)
    )


def _safe(text: str) -> str:
    """``text`` as part of a file name on any system."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", text).strip("-.")[:60] or "unnamed"


def _recording_error(path: Path, error: OSError) -> RecordingError:
    if isinstance(error, FileNotFoundError):
        return RecordingError(
            f"{path}: the log or its folder was deleted or moved while it was written",
            "keep the folder until the run ends, or record elsewhere (--out)",
        )
    reason = os.strerror(error.errno) if error.errno else str(error)
    return RecordingError(
        f"{path}: cannot be written: {reason}",
        "free disk space or record elsewhere (--out); the part written so far is readable",
    )
