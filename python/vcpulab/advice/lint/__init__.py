"""What is set up wrongly, and what mends it."""
