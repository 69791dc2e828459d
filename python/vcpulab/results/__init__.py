"""What a run leaves: tables, metrics, statistics, traces, and a run on disk."""
