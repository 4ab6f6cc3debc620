"""Logged episodes replayed in simulation: images, motion and decisions compared with the recorded ones.

::

    log ──► log_replay.py ──► pose_replay.py     recorded poses rendered by the simulator, image against image
                         ├──► action_replay.py   recorded actions from the recorded start, trajectory against trajectory
                         ├──► robot_runtime.scoring.policy_agreement   the policy over the recorded observations
                         └──► closed_loop.py     the policy in the simulator, from the recorded start
                                     │
                                results.py ──► JSON, the page

A simulator is a :class:`~sim_bridge.replay.backends.base.SimulatorBackend`: MuJoCo is built in, others have adapters.
"""
