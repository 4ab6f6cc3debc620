"""What stands in a flat: procedural furniture and small objects.

Each function returns a :class:`~sim_bridge.scenes.furniture.kit.Model`. Its frame: origin on the floor (for hung
things, at their lower edge) in the middle of the footprint, front towards -y, back (the wall's side) towards +y.
"""
