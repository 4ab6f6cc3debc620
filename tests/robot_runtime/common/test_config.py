"""Every malformed file gives one message that names file, field and remedy."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.common import config
from robot_runtime.common.yaml_text import dump_yaml, parse_yaml
from robot_runtime.errors import ConfigError, DriverMissing


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Wheel:
    radius_m: float
    spokes: int = 8


@dataclass(frozen=True)
class Cart(config.Strict):
    name: str
    wheels: tuple[Wheel, ...] = ()
    named: dict[str, Wheel] = field(default_factory=dict)
    colour: Colour = Colour.RED
    gear: Literal["low", "high"] | None = None
    max_speed_m_s: float = 1.0

    def __post_init__(self) -> None:
        if self.max_speed_m_s <= 0:
            raise ValueError("max_speed_m_s must be positive")


def write(folder: Path, text: str) -> Path:
    path = folder / "cart.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_document_becomes_frozen_dataclasses(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "name: c\nwheels: [{radius_m: 1}, {radius_m: 2e-1, spokes: 3}]\nnamed: {left: {radius_m: .5}}\n"
        "colour: red\ngear: high\nmax_speed_m_s: 3\n",
    )
    assert config.load(path, Cart) == Cart(
        "c", (Wheel(1.0), Wheel(0.2, 3)), {"left": Wheel(0.5)}, Colour.RED, "high", 3.0
    )


@pytest.mark.parametrize(("text", "value"), [("1e-3", 1e-3), ("-2E5", -2e5), ("+1.5e+2", 150.0), ("1.e1", 10.0)])
def test_numbers_with_exponents_are_numbers(tmp_path: Path, text: str, value: float) -> None:
    assert config.read_yaml(write(tmp_path, f"x: {text}")) == {"x": value}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_python_float_reads_back(tmp_path_factory: pytest.TempPathFactory, value: float) -> None:
    path = tmp_path_factory.getbasetemp() / "float.yaml"
    path.write_text(f"x: {value!r}")
    assert config.read_yaml(path) == {"x": value}


@pytest.mark.parametrize(
    "text",
    ["2750131761e4", "1e-3", "030", "1:30", "0b1", "null", "yes", "1_000", ".5", "1.", "~", "\u00a0", "a:\u200b"],
)
def test_a_text_that_looks_like_a_number_is_written_as_text(text: str) -> None:
    document = {text: text, "list": [text, 1e-3, 30]}
    assert parse_yaml(dump_yaml(document), "a file") == document


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("name: [1, 2\n", "line 2, column 1", "expected ',' or ']'"),
        ("name: c\n\tgear: low", "line 2, column 1", "found"),
        ("name: c\nwheels:\n- {radius_m: 1\n", "line 4, column 1", "expected"),
        ("? [1]\n: 2\n", "line 1, column 3", "unhashable key"),
        ("name: c\ngear: low\ngear: high\n", "line 3, column 1", "the key 'gear' is repeated"),
        ("name: c\nnamed: {a: {radius_m: 1}, a: {radius_m: 2}}", "line 2, column 27", "the key 'a' is repeated"),
        ("name: !!python/object/apply:os.getcwd []", "line 1, column 7", "could not determine a constructor"),
    ],
)
def test_malformed_yaml_names_line_and_column(tmp_path: Path, text: str, place: str, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.read_yaml(path)
    assert caught.value.message.startswith(f"{path}: {place} is not valid YAML")
    assert problem in caught.value.message
    assert caught.value.remedy


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i}\n  <<: [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, "aliases stand for more than"),
        (MERGES, "aliases stand for more than"),
        (f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 100}]", "aliases stand for more than"),
        ("a: &a [*a]", "'a' holds itself"),
        ("a: &a {b: {<<: *a}}", "'a' holds itself"),
        ("a: 2026-02-31", "not a valid timestamp"),
        ("a: 0000-01-01T99:00:00Z", "not a valid timestamp"),
        ("a: " + "9" * 100_000, "a number of 100000 characters"),
        ("a: 0x" + "f" * 100_000, "a number of 100002 characters"),
        ("a: 1" + ":59" * 50_000, "a number of 150001 characters"),
        ("[" * 5_000 + "]" * 5_000, "nested more than 64 deep"),
        ("- " * 5_000, "nested more than 64 deep"),
        ("{" + ", ".join(f"{i * (2**61 - 1)}: 0" for i in range(5_000)) + "}", "a key of"),
        ("".join(f"%TAG !a{i}! x\n" for i in range(50_000)) + "--- a", "lines that begin with %"),
        ("!!int x", "'x' is not a valid int"),
        ("!!bool x", "'x' is not a valid bool"),
        ("!!timestamp x", "'x' is not a valid timestamp"),
        ("!!map [1]", "expected a mapping"),
        ("!" * 1_000_000, "could not determine a constructor"),
        ("a" * ((1 << 25) + 1), "has more than 33554432 bytes"),
        ("? !!binary aGk=\n: 1", "a key is neither text nor number"),
        ("2026-01-01: 1", "a key is neither text nor number"),
    ],
)
def test_yaml_of_strangers_ends_in_a_config_error_within_a_second(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path, text)
    begin_s = time.process_time()
    with pytest.raises(ConfigError, match=re.escape(problem)) as caught:
        config.load(path, Cart)
    assert time.process_time() - begin_s < 1.0
    assert caught.value.message.startswith(f"{path}:")
    assert len(str(caught.value)) < 1000


def test_merge_keys_are_not_repeated_keys(tmp_path: Path) -> None:
    path = write(tmp_path, "a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: *a, z: 3}\nd:\n  <<: *a\n  <<: *b\n")
    assert config.read_yaml(path)["c"] == {"x": 1, "z": 3}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml: no such file"):
        config.load(tmp_path / "nothing.yaml", Cart)


def test_a_folder_or_a_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        config.read_yaml(tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00x")
    with pytest.raises(ConfigError, match=r"b\.yaml: cannot be read"):
        config.read_yaml(tmp_path / "b.yaml")


@pytest.mark.parametrize(
    ("text", "field_name", "message", "remedy"),
    [
        ("nam: c", "nam", "there is no such field", "did you mean 'name'?"),
        ("name: c\nwheels: [{radius_m: 1, spoke: 2}]", "wheels.0.spoke", "no such field", "did you mean 'spokes'?"),
        ("name: c\nnamed: {l: {radius: 1}}", "named.l.radius", "no such field", "did you mean 'radius_m'?"),
        ("name: c\nzzz: 1", "zzz", "there is no such field", "correct 'zzz' there"),
        ("wheels: []", "name", "Field required", "\nname: name"),
        ("name: 3", "name", "valid string (found 3)", "correct"),
        ("name: c\nmax_speed_m_s: '3'", "max_speed_m_s", "valid number (found '3')", "correct"),
        ("name: c\nmax_speed_m_s: yes", "max_speed_m_s", "valid number (found True)", "correct"),
        ("name: c\nmax_speed_m_s: .nan", "max_speed_m_s", "finite number", "correct"),
        ("name: c\nmax_speed_m_s: .inf", "max_speed_m_s", "finite number", "correct"),
        ("name: c\nwheels: [{radius_m: 1, spokes: 1.5}]", "wheels.0.spokes", "integer", "correct"),
        ("name: c\ngear: middle", "gear", "'low' or 'high' (found 'middle')", "correct"),
        ("name: c\ncolour: blue", "colour", "'red' (found 'blue')", "correct"),
        ("name: c\nmax_speed_m_s: -1", "max_speed_m_s", "max_speed_m_s must be positive", "correct"),
        ("name: 2020-01-01\nwheels: 3", "wheels", "found 3", "correct"),
        ("- 1", "", "the document: Input should be an object", "it is a mapping with name"),
        ("", "", "the document: Input should be an object", "it is a mapping with name"),
    ],
)
def test_a_wrong_field_is_named_with_its_remedy(
    tmp_path: Path, text: str, field_name: str, message: str, remedy: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.load(path, Cart)
    assert caught.value.message.startswith(f"{path}: field {field_name!r}: " if field_name else f"{path}: ")
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert "\n" not in caught.value.message


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_document_parses_or_gives_a_config_error(data: object) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(config.parse(data, Cart, "here"), Cart)


# --- presets ----------------------------------------------------------------------------------------------------------


def test_presets_of_the_working_directory_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "launch" / "robots" / "fake.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    elsewhere = config.find_preset("robots", "fake")
    monkeypatch.chdir(tmp_path)
    assert config.find_preset("robots", "fake") == own
    assert elsewhere != own
    assert [name for name, _ in config.presets("robots")].count("fake") == 1


def test_a_path_is_taken_as_it_is() -> None:
    assert config.find_preset("robots", "some/where.yaml") == Path("some/where.yaml")
    assert config.find_preset("robots", "x.yml") == Path("x.yml")


def test_an_unknown_preset_suggests_the_nearest_and_names_all() -> None:
    with pytest.raises(ConfigError, match="there is no robot preset 'fakee'") as caught:
        config.find_preset("robots", "fakee")
    assert caught.value.remedy.startswith("did you mean 'fake'? There are: ")
    with pytest.raises(ConfigError) as caught:
        config.find_preset("cameras", "qqqqqqqqqqqq")
    assert caught.value.remedy.startswith("There are: ")
    assert all(name in caught.value.remedy for name, _ in config.presets("cameras"))


# --- drivers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dotted", ["math.hypot", "math:hypot"])
def test_a_dotted_name_becomes_the_object(dotted: str) -> None:
    assert config.resolve(dotted, "here")(3, 4) == 5


@pytest.mark.parametrize("dotted", ["hypot", "", ".", "..x", "math.", "a b.c", "math.hy-pot"])
def test_what_is_no_dotted_name_is_refused(dotted: str) -> None:
    with pytest.raises(ConfigError, match=r"here: .* is not of the form package\.module\.Name"):
        config.resolve(dotted, "here")


@pytest.mark.parametrize(
    ("dotted", "more"),
    [
        ("drivers.fakee.driver.make", ""),
        ("drivers.fake.driver.make.robot", ""),
        ("nowhere.at.all", ", or put the folder that holds 'nowhere' on PYTHONPATH"),
    ],
)
def test_a_missing_module_is_a_spelling_or_in_another_folder(dotted: str, more: str) -> None:
    with pytest.raises(DriverMissing, match=r"r\.yaml: .*there is no module") as caught:
        config.resolve(dotted, "r.yaml")
    assert caught.value.remedy == f"check the spelling of the driver{more}"


def test_a_missing_dependency_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needy_driver.py").write_text("import a_library_that_is_not_there\n")
    (tmp_path / "broken_driver.py").write_text("from math import no_such_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DriverMissing, match="there is no module 'a_library_that_is_not_there'") as caught:
        config.resolve("needy_driver.make", "r.yaml")
    assert caught.value.remedy == "install the package that provides 'a_library_that_is_not_there'"
    with pytest.raises(DriverMissing, match="cannot import name 'no_such_name'"):
        config.resolve("broken_driver.make", "r.yaml")


def test_a_missing_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="module 'math' has no 'hypott'") as caught:
        config.resolve("math.hypott", "r.yaml")
    assert caught.value.remedy == "did you mean 'hypot'?"
    with pytest.raises(ConfigError) as caught:
        config.resolve("math.zzzzzzzz", "r.yaml")
    assert caught.value.remedy == "check the spelling"
