"""Applications whose work an import assumed: nobody asked whether they are late."""

from collections.abc import Mapping
from typing import Any


def is_assumed(app: Mapping[str, Any]) -> bool:
    """Was the work of an application, as a table of a scenario, assumed by an import?

    Examples:
        >>> is_assumed({"kind": "hog", "assumed": True}), is_assumed({"kind": "hog"})
        (True, False)
    """
    return bool(app.get("assumed"))


def all_assumed(document: Mapping[str, Any], domain: str) -> bool:
    """Does a domain have applications, and was the work of each assumed?

    Examples:
        >>> apps = [{"kind": "periodic", "assumed": True}, {"kind": "hog"}]
        >>> web = {"domain": {"web": {"app": apps}, "db": {"app": apps[:1]}, "idle": {}}}
        >>> [all_assumed(web, domain) for domain in ("web", "db", "idle")]
        [False, True, False]
    """
    apps = document["domain"][domain].get("app", [])
    return bool(apps) and all(map(is_assumed, apps))
