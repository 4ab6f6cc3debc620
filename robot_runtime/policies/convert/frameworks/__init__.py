"""Scripts for interpreters that have a framework; none of them is imported here."""
