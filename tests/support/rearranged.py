"""Steps with a state of the kind rearrangement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robot_runtime.records import StepRecord
from robot_runtime.task_kinds.rearrangement.sensors import RearrangementState


def with_state(record: StepRecord, **changes: Any) -> StepRecord:
    """The step with changes of its state; see ``RearrangementState``."""
    state = record.state if isinstance(record.state, RearrangementState) else RearrangementState()
    return replace(record, state=replace(state, **changes))
