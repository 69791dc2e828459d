"""Real hosts as their listings describe them, understood once for imports and twins."""
