"""Rows of ``robot-runtime bench control``: reactions and motion of bases on serial ports, over ptys at their pace."""
