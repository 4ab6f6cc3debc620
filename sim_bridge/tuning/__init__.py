"""Tuning of the simulator: settings are compared by how well they explain logs of real episodes.

::

    real logs ──► log_statistics.py           actions by the referee, floors seen, delays
    settings.py ──► policy_runs.py            the same policies on the same episodes, in simulation  ──► SRCC
                ──► one_step_prediction.py    every recorded action from its recorded start          ──┐
                ──► evaluation.py             age of images when they are used                       ──┴► likelihood.py
                                      │
                 sweep.py: all of it on any number of workers, resumable ──► results.py ──► table, plot, JSON

There are two measures. The correlation (Kadian et al. 2020) says how well a setting predicts which policy is better on
the robot; it needs several policies and is as noisy as their success rates. The likelihood says how well a setting
explains each single action, and needs no policy.
"""
