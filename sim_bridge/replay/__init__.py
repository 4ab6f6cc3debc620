"""Logged episodes back in simulation: what the robot saw, did and decided, beside what a simulator makes of it.

::

    log ──► replay.py ──► pose_replay.py     recorded poses rendered in the twin, sensor against sensor
                     ├──► action_replay.py   recorded actions from the recorded start, trajectory against trajectory
                     ├──► robot_runtime.scoring.policy_agreement   the policy over the recorded observations (open loop)
                     └──► closed_loop.py     the policy in the twin from the recorded start
                                 │
                            results.py ──► JSON, the page

A *twin* (``twin.py``) is a simulator that stands in for robot and place: MuJoCo is built in, other simulators are
reached through adapters.
"""
