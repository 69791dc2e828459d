"""What a policy needs of `vcpulab._engine` in a browser; `served` gives the context its methods."""


class Rejected(Exception):  # noqa: N818 - a refusal is no error of the policy
    """Raised by a policy's hook that refuses the values it is given."""


class Context:
    """The host as a policy sees it, to read and to ask. There during a hook only."""
