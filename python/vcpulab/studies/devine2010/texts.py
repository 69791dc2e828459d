"""What stands in the way of agreement."""

LIMITS = """TODO"""
