"""Applications whose work an import assumed: their lateness is no finding."""

from collections.abc import Mapping
from typing import Any


def is_assumed(app: Mapping[str, Any]) -> bool:
    """`True`: an import assumed the work of an application, given as a table of a scenario.

    Examples:
        >>> is_assumed({"kind": "hog", "assumed": True}), is_assumed({"kind": "hog"})
        (True, False)
    """
    return bool(app.get("assumed"))


def all_assumed(document: Mapping[str, Any], domain: str) -> bool:
    """`True`: a domain has applications, and an import assumed the work of each.

    Examples:
        >>> apps = [{"kind": "periodic", "assumed": True}, {"kind": "hog"}]
        >>> web = {"domain": {"web": {"app": apps}, "db": {"app": apps[:1]}, "idle": {}}}
        >>> [all_assumed(web, domain) for domain in ("web", "db", "idle")]
        [False, True, False]
    """
    apps = document["domain"][domain].get("app", [])
    return bool(apps) and all(map(is_assumed, apps))
