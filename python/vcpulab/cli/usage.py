"""What all parts of the command line share."""


def examples(*lines: str) -> str:
    """The end of a command's help: examples that run."""
    return "Examples:\n\n" + "\n".join(f"    $ {line}" for line in lines)
