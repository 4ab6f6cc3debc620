"""Console: a web page for the people near a robot, with a stop that has a path of its own.

===============  ======================================================================================================
``console``      all parts of a run's console, as one context; verdicts and notes
``protocol``     messages of the page
``control``      server of the operator: stop, heartbeat, commands; in the robot's process
``supervision``  pause, end, take over, drive to the start, in the robot's loop
``feed``         what the robot does, from its loop to the page's process
``alerts``       what needs a person, and the minutes that battery and disk last
``live_video``   pictures between the steps
``web``          server of the page and its pictures; in a process of its own
===============  ======================================================================================================

Two processes and three sockets, so that no picture can be in the way of a stop::

    page ── WebSocket, port + 1 ──► control (thread in the robot's process) ──┐
      │                                                                       ├──► Base.emergency_stop
      └──── POST /stop, port ─────► web (own process) ── pipe ──► thread ─────┘
    page ◄─── WebSocket /live ────  web ◄── pipe ── feed (thread) ◄── subscriber of the robot's loop
"""
