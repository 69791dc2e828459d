"""Answers as JSON, which knows no infinity."""

import json
import math
from collections.abc import Mapping
from typing import Any


def as_json(document: Any) -> str:
    """The text of a document; numbers that are infinite or undefined are `null`, and something beside them says why.

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
