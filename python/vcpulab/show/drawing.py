"""Charts drawn by vl-convert, in a process of its own: it ends the process that it is in where memory is short.

Needs the extra `report`.
"""

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vcpulab.children import why
from vcpulab.errors import VcpulabError
from vcpulab.extras import require

_PROGRAM = """\
import json, sys, vl_convert
from base64 import b64encode
what, specs = json.load(sys.stdin)
if what == "library":
    drawn = [vl_convert.javascript_bundle()]
else:
    drawn = [getattr(vl_convert, "vegalite_to_" + what)(spec) for spec in specs]
json.dump([b64encode(one if what == "png" else one.encode()).decode() for one in drawn], sys.stdout)
"""


class DrawingError(VcpulabError):
    """Charts could not be drawn; the text says why."""


def library() -> str:
    """The program that draws charts in a page, for the script of one.

    Raises:
        DrawingError: it could not be put together.
    """
    return _drawn("library", ())[0].decode()


def pictures(what: Literal["svg", "png"], specs: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Charts, specified in Vega-Lite, as pictures.

    Raises:
        DrawingError: one cannot be drawn.
    """
    return _drawn(what, specs)


def _drawn(what: str, specs: Sequence[Mapping[str, Any]]) -> list[bytes]:
    require("vl_convert", "report")
    asked = json.dumps([what, specs])
    done = subprocess.run([sys.executable, "-c", _PROGRAM], input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        said = why(done.returncode, done.stderr)
        raise DrawingError(f"charts could not be drawn: vl-convert: {said}\n  hint: is there enough memory?")
    return [b64decode(one) for one in json.loads(done.stdout)]
