"""What a policy needs of `vcpulab._engine`, where the engine is a program on the other side: `served` gives the context its methods."""


class Rejected(Exception):
    """Raised by a policy's hook that refuses the values it is given."""


class Context:
    """The host as a policy sees it, to read and to ask. There during a hook only."""
