"""Files: written whole or not at all, and opened only if they are regular."""
