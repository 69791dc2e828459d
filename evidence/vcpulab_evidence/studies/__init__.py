"""Published studies, run again: each has a folder with its scenarios, published cells, cases, claims and notes.

A new study is a folder with a `STUDY` in it, and one line here.
"""

from importlib import import_module

from vcpulab.errors import RequestError
from vcpulab_evidence.studies.definition import Study

NAMES = ("cherkasova2007", "devine2010", "venkatesh2015", "benevenuto2006")


def study(name: str) -> Study:
    """The study with a name.

    Raises:
        RequestError: no study has the name.

    Examples:
        >>> study("cherkasova2007").title
        'Three CPU schedulers in Xen'
    """
    if name not in NAMES:
        raise RequestError(f"no study `{name}`; there are: {', '.join(NAMES)}")
    definition: Study = import_module(f"vcpulab_evidence.studies.{name}").STUDY
    return definition
