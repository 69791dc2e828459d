"""What a run leaves: tables, metrics at their addresses, statistics, files."""

accessors: dict[str, str] = {}
"""What other packages add to a run: attribute to `module:class`, imported when it is first used."""
