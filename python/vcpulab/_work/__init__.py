"""How long work is done: limits of time and memory, processes, and progress."""
