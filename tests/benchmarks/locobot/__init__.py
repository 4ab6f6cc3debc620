"""Rows of ``bench control``: reactions and motion of bases on serial ports, over ptys at their pace."""
