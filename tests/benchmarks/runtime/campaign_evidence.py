"""Verification of simulated campaigns: frauds that must be found, and ledgers that must not end it."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from robot_runtime.campaign.status import read_status
from robot_runtime.campaign.verification import Verification
from robot_runtime.errors import RuntimeFault
from robot_runtime.recording.integrity import Chain
from robot_runtime.recording.log_files import LEDGER_FILE
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.campaign_conditions import CONDITIONS
from tests.benchmarks.runtime.campaign_frauds import FRAUDS, is_found
from tests.benchmarks.runtime.campaign_log_frauds import EXCHANGES, INSIDE
from tests.benchmarks.runtime.simulated_campaigns import run_judged_campaign
from tests.support.mutations import mutated, mutated_document


def fraud_row() -> Row:
    """Row ``frauds_found``: on copies of an honest campaign, judged, with help, of eight runs; some on their own."""
    frauds = FRAUDS + CONDITIONS + INSIDE
    with TemporaryDirectory() as name:
        folder = Path(name)
        honest = run_judged_campaign(folder)
        missed = [
            fraud.name for number, fraud in enumerate(frauds) if not is_found(fraud, honest, folder / f"{number}")
        ]
        missed += [one.name for number, one in enumerate(EXCHANGES) if not one.is_found(folder / f"exchange{number}")]
    special = [fraud.name for fraud in frauds if fraud.published or fraud.witnessed]
    note = (
        f"of {len(frauds) + len(EXCHANGES)}; with the published plan or a head that others kept: {', '.join(special)}"
    )
    missing = f"; not found: {', '.join(missed)}" if missed else ""
    count = len(frauds) + len(EXCHANGES)
    return Row(
        "frauds_found", "frauds that the verification finds", count - len(missed), "", count, note=note + missing
    )


def foreign_row(ledgers: int, seed: int) -> Row:
    """Row ``verify_foreign_errors``: ledgers of a judged campaign with random changes, most with a chain that holds."""
    ends, foreign = Counter[str](), Counter[str]()
    with TemporaryDirectory() as name:
        campaign = run_judged_campaign(Path(name), starts=1)
        path = campaign / LEDGER_FILE
        honest = path.read_bytes()
        for number in range(ledgers):
            path.write_bytes(mutated_ledger(honest, random.Random(f"{seed} {number}")))
            try:
                ends[read_all(campaign)] += 1
            except Exception as error:  # noqa: BLE001 - any other exception is what is looked for
                foreign[f"{type(error).__name__} in ledger {number}"] += 1
    counts = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    note = "; ".join([f"of {ledgers:,}: {counts}", *list(foreign)[:3]])
    label = "altered ledgers that end `campaign verify` or `status` in anything but findings or an error of the project"
    return Row("verify_foreign_errors", label, foreign.total(), "", 0, "<=", note=note)


def read_all(campaign: Path) -> str:
    """Verify a campaign, and read its status; how the verification ended."""
    with suppress(RuntimeFault):  # the status refuses what the verification describes
        read_status(campaign)
    try:
        found = Verification(campaign)
        json.dumps([found.document(), found.sessions, found.unchecked], allow_nan=False)
    except RuntimeFault:
        return "refused"
    return "found" if found.findings else "without a finding"


def mutated_ledger(data: bytes, random_: random.Random) -> bytes:
    """A ledger with changes of its bytes or of a line's values, lines moved or doubled, and a chain that holds."""
    if random_.random() < 0.2:
        return mutated(data, random_)
    lines: list[Any] = [json.loads(line) for line in data.splitlines()]
    place = random_.randrange(len(lines))
    lines[place] = mutated_document(lines[place], random_)
    if random_.random() < 0.2:
        moved = lines[random_.randrange(len(lines))]
        lines.insert(random_.randrange(len(lines)), moved)
        if random_.random() < 0.5:
            lines.remove(moved)
    chain, written = Chain(), []
    for line in lines:
        content = {key: value for key, value in line.items() if key != "chain"} if isinstance(line, dict) else line
        raw = json.dumps(content, separators=(",", ":")).encode()
        written.append(chain.append(raw) if raw.endswith(b"}") else raw)
    return b"\n".join(written) + b"\n"
