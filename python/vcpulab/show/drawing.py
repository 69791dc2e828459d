"""Charts drawn by vl-convert in a separate process, because it ends its process when memory is short.

Needs the extra `report`.
"""

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vcpulab._extras import require
from vcpulab._work.subprocesses import failure
from vcpulab.errors import VcpulabError

_PROGRAM = """\
import json, sys, vl_convert
from base64 import b64encode
product, specs = json.load(sys.stdin)
if product == "library":
    drawn = [vl_convert.javascript_bundle()]
else:
    drawn = [getattr(vl_convert, "vegalite_to_" + product)(spec) for spec in specs]
json.dump([b64encode(image if product == "png" else image.encode()).decode() for image in drawn], sys.stdout)
"""


class DrawingError(VcpulabError):
    """Charts could not be drawn; the message has the reason."""


def library() -> str:
    """The JavaScript program that draws charts in a page.

    Raises:
        DrawingError: vl-convert failed.
    """
    return _drawn("library", ())[0].decode()


def pictures(picture_format: Literal["svg", "png"], specs: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Charts, specified in Vega-Lite, as pictures.

    Raises:
        DrawingError: a chart cannot be drawn.
    """
    return _drawn(picture_format, specs)


def _drawn(product: str, specs: Sequence[Mapping[str, Any]]) -> list[bytes]:
    require("vl_convert", "report")
    request = json.dumps([product, specs])
    done = subprocess.run([sys.executable, "-c", _PROGRAM], input=request, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = failure(done.returncode, done.stderr)
        raise DrawingError(f"charts could not be drawn: vl-convert: {reason}\n  hint: is there enough memory?")
    return [b64decode(picture) for picture in json.loads(done.stdout)]
