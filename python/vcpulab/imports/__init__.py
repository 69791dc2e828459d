"""Scenarios of the listings of real hosts."""
