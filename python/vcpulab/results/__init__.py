"""What a run leaves: tables, metrics at their addresses, statistics, files."""

accessors = {"plot": "vcpulab.show.plots:Plots"}
"""What the layers above add to a run: attribute to `module:class`, imported when it is first used."""
