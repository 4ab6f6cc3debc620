"""The bundled udev rules, and their installer."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from robot_runtime.errors import ConfigError, DeviceFault

FOLDER = Path("/etc/udev/rules.d")
RELOAD_S = 20.0

_MATCH = re.compile(r'ATTRS\{(idVendor|idProduct)\}=="([0-9a-f]{4})"')
_SERIAL_NUMBER = re.compile(r'ATTRS\{serial\}=="([^"]+)"')
_LINK = re.compile(r'SYMLINK\+="(\w+)"')


@dataclass(frozen=True)
class Rule:
    """A rule that gives a kind of serial port a name."""

    vendor: int
    product: int
    link: str
    serial_number: str = "*"

    def fits(self, vendor: int, product: int, serial_number: str) -> bool:
        """Whether it is a device's rule."""
        same_kind = (vendor, product) == (self.vendor, self.product)
        return same_kind and fnmatchcase(serial_number, self.serial_number)


@dataclass(frozen=True)
class RuleFile:
    """A file of rules of a driver."""

    path: Path

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Its rules that name serial ports."""
        found = []
        for line in self.path.read_text(encoding="utf-8").replace("\\\n", "").splitlines():
            ids, link = dict(_MATCH.findall(line)), _LINK.search(line)
            if not line.startswith("#") and len(ids) == 2 and link:
                number = _SERIAL_NUMBER.search(line)
                rule = Rule(int(ids["idVendor"], 16), int(ids["idProduct"], 16), link.group(1))
                found.append(rule if number is None else replace(rule, serial_number=number.group(1)))
        return tuple(found)

    def state(self, folder: Path = FOLDER) -> str:
        """``installed``, ``outdated`` or ``missing`` in a folder of rules."""
        there = folder / self.path.name
        if not there.is_file():
            return "missing"
        return "installed" if there.read_bytes() == self.path.read_bytes() else "outdated"


def rule_files() -> Sequence[RuleFile]:
    """Return the files of all drivers."""
    return [RuleFile(path) for path in sorted(Path(__file__).parents[1].glob("*/*.rules"))]


def install(files: Sequence[RuleFile], folder: Path = FOLDER) -> None:
    """Copy rules, and have udev apply them to what is plugged in.

    Raises:
        ConfigError: the folder cannot be written.
        DeviceFault: udev does not take them over.
    """
    try:
        for file in files:
            shutil.copyfile(file.path, folder / file.path.name)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be written: {error.strerror or error}",
            f"run it as root: sudo {shutil.which('robot-runtime') or 'robot-runtime'} hardware udev --install",
        ) from error
    if folder != FOLDER:
        return
    try:
        for command in (["udevadm", "control", "--reload"], ["udevadm", "trigger"]):
            subprocess.run(command, check=True, capture_output=True, timeout=RELOAD_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise DeviceFault(
            f"the rules are in {folder}, but udev did not take them over: {error}",
            "unplug the devices and plug them in again, or restart; in a container, install the rules on the host",
        ) from error
