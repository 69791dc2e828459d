"""The errors of the package have one base, and one form."""

import importlib
import pickle
import pkgutil

import pytest

import vcpulab
from vcpulab.errors import RequestError, VcpulabError

TEXTS = [
    (RequestError("no files"), "no files"),
    (RequestError(field="jobs", found=-1, allowed="0 to 1024"), "jobs: found `-1`; allowed: 0 to 1024"),
    (RequestError(found="x", hint="try `y`"), "found `x`\n  hint: try `y`"),
    (RequestError("is set twice", field="set", found="a=1"), "set a=1: is set twice"),
    (RequestError("there is no `a`", field="slo", allowed="`b`"), "slo: there is no `a`; allowed: `b`"),
]


@pytest.mark.parametrize(("error", "text"), TEXTS)
def test_a_wrong_request_says_where_what_and_what_else(error: RequestError, text: str) -> None:
    assert str(error) == text
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.field, again.hint) == (text, error.field, error.hint)


def test_a_field_may_be_called_otherwise() -> None:
    assert TEXTS[1][0].text("--jobs") == "--jobs: found `-1`; allowed: 0 to 1024"


def test_every_error_of_the_package_is_a_vcpulab_error() -> None:
    for found in pkgutil.walk_packages(vcpulab.__path__, "vcpulab."):
        module = importlib.import_module(found.name)
        own = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Exception)]
        strangers = [one for one in own if one.__module__ == found.name and not issubclass(one, VcpulabError)]
        assert [one for one in strangers if one.__name__.endswith("Error")] == []
