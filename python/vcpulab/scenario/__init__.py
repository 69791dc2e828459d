"""Scenarios in Python: the scenario, paths into it, settings, units."""
