"""Network definitions of our own, for conversion and measurement; the only folder that imports torch to build with it.

They have the names and shapes of the parameters that published checkpoints hold, so that a checkpoint loads without the
framework that wrote it. Robots run what was exported from them, never these.
"""
