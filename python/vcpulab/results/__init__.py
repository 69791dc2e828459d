"""The results of a run: tables, metrics at their addresses, statistics, files."""

accessors = {"plot": "vcpulab.show.plots:Plots"}
"""Attributes of a run from the layers above: name to `module:class`, imported at the first use."""
