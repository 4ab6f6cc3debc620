"""The guard process as a program: ``python -m drivers.serial_base SETTINGS``, started by the runtime."""

from drivers.serial_base.process import main

main()
