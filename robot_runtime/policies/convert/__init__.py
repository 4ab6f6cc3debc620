"""Conversion of a training framework's checkpoint to a policy package, on a developer's machine.

``pickles`` and ``checkpoint`` read the file without running code in it; ``habitat`` and ``allenact`` interpret the
content of each framework; ``weights`` loads the tensors into the networks of ``networks``; ``proof`` compares these,
the exported network and, if it is installed, the framework; ``export`` runs all steps in order. ``draft`` makes a
package of an exported network from what its file says (``network_facts``).
"""
