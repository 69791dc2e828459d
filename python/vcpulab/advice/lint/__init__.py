"""Rules for probable mistakes in scenarios, and the simulated effects of their fixes."""
