"""How a robot gets to an episode's start where nobody can teleport it: brought by a person, or driving."""
