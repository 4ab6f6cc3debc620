"""From a training framework's checkpoint to a policy package, on a developer's machine.

``pickles`` and ``checkpoint`` read the file without running anything in it, ``habitat`` and ``allenact`` know what the
two frameworks put there, ``weights`` puts it into networks of our own (``robot_runtime.policies.convert.networks``),
``proof``
compares those, what was exported, and where it is installed the framework itself, and ``export`` is all of it in order.
"""
