"""Emergency stop of a connected robot: from its wired inputs, the terminal, other processes and the console.

============  =========================================================================================================
``requests``  stop and release of the base, confirmed by its state; wait for the release
``inputs``    wired inputs of the robot's computer; ``hal.stop_inputs`` describes them
``server``    requests of other processes on this machine
``cli``       the command ``robot-runtime stop``, and the keys in the terminal of a run
============  =========================================================================================================
"""
