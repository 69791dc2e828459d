"""The setups of recordings that `make real-host` makes (`setup.md`): a line for each VM.

`* VM NAME: shares=N quota=µs period=µs cpus=CPUS WORK …`, with `weight=` in place of `shares=` on control groups of
version 2, `-` for what is not limited, and the work of each thread. What threads do is in the recording.
"""

import re
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.machine import Machine
from vcpulab.formats.sources import text_of

BEGINS = r"\* VM \S+: (shares|weight)="
"""The beginning of such a file."""
_ALLOWED = "`* VM NAME: shares=N quota=N period=N cpus=CPUS WORK …`, - for what is not limited"
_VM = re.compile(
    r"\* VM (?P<name>\S{1,255}): (shares|weight)=(?P<shares>\d{1,6}) quota=(?P<quota>-|\d{1,12}) "
    r"period=(?P<period>-|\d{1,9}) cpus=(?P<cpus>-|[\d,-]{1,4096})(?P<threads>( \d{1,9}(:\d{1,9}(:\d{1,3})?)?){1,4096})"
)


def read_setup(path: str | PathLike[str]) -> list[Machine]:
    """The VMs of such a setup.

    Raises:
        RecordingError: a line says something else.
    """
    machines = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip():
            continue
        vm = _VM.fullmatch(line.strip())
        if vm is None:
            raise wrong(str(path), number, line, _ALLOWED)
        threads = len(vm["threads"].split())
        params: dict[str, int] = {}
        if vm["quota"] != "-":
            params["global_quota_us"] = int(vm["quota"])
            if vm["period"] != "-":
                params["global_period_us"] = int(vm["period"])
        pins = {} if vm["cpus"] == "-" else dict.fromkeys(range(threads), vm["cpus"])
        machines.append(Machine(vm["name"], vcpus=threads, params=params, shares=int(vm["shares"]), vcpu_pins=pins))
    return machines
