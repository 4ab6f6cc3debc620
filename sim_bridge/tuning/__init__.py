"""Which settings of the simulator are the robot's: each is tried on what logs of real episodes hold.

::

    real logs ──► evidence.py     actions by the referee, floors seen, delays
    settings.py ──► episodes.py   the same policies on the same episodes, in simulation      ──► SRCC
                ──► motion.py     every recorded action from its recorded start              ──┐
                ──► timing.py     how old images are when they are used                      ──┴► likelihood.py
                                      │
                 sweep.py: all of it on any number of workers, resumable ──► results.py ──► table, plot, JSON

Two measures, because they answer two questions. The correlation (Kadian et al. 2020) says how well a setting foretells
which policy is better on the robot; it needs several policies and is as noisy as their success rates. The likelihood
says how well a setting explains each single action, and needs no policy at all.
"""
