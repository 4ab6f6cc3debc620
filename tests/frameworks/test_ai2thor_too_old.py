"""The ai2thor that RoboTHOR's robot client needs is refused as too old for replays, before anything starts."""

from __future__ import annotations

import ai2thor
import pytest
from synthetic import header

from robot_runtime.errors import DriverMissing
from sim_bridge.replay.backends.ai2thor import make_backend


def test_the_installed_ai2thor_is_told_from_the_one_that_a_simulator_needs():
    assert ai2thor.__version__ == "2.7.2"
    with pytest.raises(DriverMissing, match=r"ai2thor 2\.7\.2 is not 5 or later") as error:
        make_backend(header(), None, False, {}, "--into ai2thor")
    assert error.value.remedy == "pip install 'ai2thor>=5'"
