"""Advice for a host: what it is set to, what it should be set to, and what it can carry."""
