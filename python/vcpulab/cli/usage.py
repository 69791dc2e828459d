"""What all parts of the command line share."""


class UsageError(Exception):
    """What was asked for cannot be done as it was asked."""


def examples(*lines: str) -> str:
    """The end of a command's help: examples that run."""
    return "Examples:\n\n" + "\n".join(f"    $ {line}" for line in lines)
