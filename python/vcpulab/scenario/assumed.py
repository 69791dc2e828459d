"""Domains whose work an import assumed: their lateness is no finding."""

from vcpulab.scenario.model import Domain


def all_assumed(domain: Domain) -> bool:
    """`True`: a domain has applications, and an import assumed the work of each.

    Examples:
        >>> periodic, hog = {"kind": "periodic", "assumed": True}, {"kind": "hog"}
        >>> [all_assumed(Domain({"app": apps})) for apps in ([periodic, hog], [periodic], [])]
        [False, True, False]
    """
    return bool(domain.apps) and all(app.assumed for app in domain.apps)
