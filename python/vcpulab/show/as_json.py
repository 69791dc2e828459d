"""Answers as JSON, which has no infinite numbers."""

import json
import math
from collections.abc import Mapping
from typing import Any


def as_json(document: Any) -> str:
    """The JSON text of a document; infinite and undefined numbers are `null`, with the reason in another field.

    Examples:
        >>> print(as_json({"response_s": float("inf"), "undefined": "it grows"}))
        {
          "response_s": null,
          "undefined": "it grows"
        }
    """
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
