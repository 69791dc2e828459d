"""Commands for a host of XAPI: XCP-ng, XenServer.

Its database is where a VM's settings are kept: `xe vm-param-set` holds from the VM's next start on, and `xl` in Dom0
sets the same at once. Weights and caps reach the hypervisor under credit alone (`xenguest`: "Failed to get credit
scheduler parameters: scheduler not enabled?" otherwise).

Sources: XCP-ng's reference of `xe` (`VCPUs-params:weight`, `cap`, `mask`; `VCPUs-max`, `VCPUs-at-startup`); xen-api,
`xapi_xenops.ml`, for masks ("1,2,3: all vCPUs receive this mask; 1,2,3; 4,5,6: vCPU n receives mask n");
`host-cpu-tune` of XenServer for `xen-cmdline --set-xen`, `dom0_max_vcpus` and `dom0_vcpus_pin`.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vcpulab.hypervisors import xl
from vcpulab.hypervisors.settings import DOM0, Affinity, Backend, Change, Life, Member, Params, Setting, Vcpus
from vcpulab.hypervisors.steps import Step, in_loops
from vcpulab.hypervisors.way import Way, cannot, run
from vcpulab.hypervisors.xen import way_of
from vcpulab.scenario.units import members

_SET_XEN = "/opt/xensource/libexec/xen-cmdline --set-xen"
_RC_LOCAL = "/etc/rc.d/rc.local"
_KEEPS = "credit"
_LIVES = {
    "create": "vm-start vm={}",
    "shutdown": "vm-shutdown vm={}",
    "reboot": "vm-reboot vm={}",
    "destroy": "vm-shutdown vm={} force=true",
    "save": "vm-suspend vm={}",
    "restore": "vm-resume vm={}",
    "pause": "vm-pause vm={}",
    "unpause": "vm-unpause vm={}",
}


def steps(change: Change) -> list[Step]:
    """The steps, in order: after a restart, at once, to keep the settings, and settings without a command."""
    if change.first.tools.tool not in ("xl", ""):
        return [Step("cannot", f"{change.first}: XAPI has no release of {change.first.tools.tool}'s days")]
    ways = [_kept(setting) for setting in change.settings]
    return [
        *(Step("boot", f"{_SET_XEN} {option}") for way in ways for option in way.boot),
        *run(ways),
        *(Step("keep", f"{_SET_XEN} {option}") for way in ways for option in way.options),
        *_in_database(ways),
        *_at_start(ways),
        *dict.fromkeys(cannot(ways)),
        *(replace(step, at=at) for at, setting in change.later for step in _later(setting)),
    ]


def _later(setting: Setting) -> Iterator[Step]:
    ways = [_way(setting)]
    yield from run(ways)
    yield from cannot(ways)


def _kept(setting: Setting) -> Way:
    """The way of XAPI for a setting, with a note where XAPI does not keep it."""
    way = _way(setting)
    soft = isinstance(setting, Affinity) and setting.soft
    lost = soft or isinstance(setting, Member) or (isinstance(setting, Params) and setting.pool.scheduler != _KEEPS)
    if lost and way.run and way.domain not in (None, DOM0):
        again = f"domain {way.domain}: XAPI does not keep this; type it again after each start"
        way = replace(way, keys={}, after=[], cannot=[*way.cannot, again])
    return way


def _way(setting: Setting) -> Way:
    """The way of XAPI for a setting: its own commands where it has some, otherwise those of Xen."""
    match setting:
        case Vcpus(_, domain) if domain != DOM0:
            stop, start = (f"xe vm-{operation} vm={domain}" for operation in ("shutdown", "start"))
            return Way(domain, run=[f"{stop} && {_set(domain)} {_vcpus(setting)} && {start}"])
        case Life(_, domain, op) if op in _LIVES:
            return Way(domain, run=[f"xe {_LIVES[op].format(domain)}"])
        case Backend(kind="disk"):
            return Way.none(f"{setting}: on vCPU {setting.vcpu} of {setting.driver}: tapdisk serves it", setting.domain)
    return way_of(setting)


def _set(domain: str) -> str:
    return f"xe vm-param-set uuid={_uuid(domain)}"


def _uuid(domain: str) -> str:
    return f"$(xe vm-list name-label={domain} --minimal)"


def _vcpus(setting: Vcpus) -> str:
    """The two numbers of vCPUs, in the order in which `VCPUs-at-startup` never exceeds `VCPUs-max`."""
    most, first = f"VCPUs-max={setting.count}", f"VCPUs-at-startup={setting.count}"
    fewer = setting.old_count is not None and setting.count < setting.old_count
    return f"{first} {most}" if fewer else f"{most} {first}"


def _in_database(ways: list[Way]) -> Iterator[Step]:
    for domain, keys in xl.of_domains(ways).items():
        if keys.get("affinity") == "all":
            remove = f"xe vm-param-remove uuid={_uuid(domain)} param-name=VCPUs-params param-key=mask"
            yield Step("keep", remove, domain=domain)
        params = _params(keys)
        if params:
            yield Step("keep", f"{_set(domain)} {' '.join(params)}", domain=domain)


def _params(keys: Mapping[str, Any]) -> list[str]:
    params = [f"VCPUs-params:{key}={keys[key]}" for key in ("weight", "cap") if key in keys]
    affinity = keys.get("affinity", "all")
    if affinity != "all":
        each = [affinity] if isinstance(affinity, str) else affinity
        masks = ";".join(",".join(map(str, members(pcpus))) for pcpus in each)
        params.append(shlex.quote(f"VCPUs-params:mask={masks}"))
    return params


def _at_start(ways: list[Way]) -> Iterator[Step]:
    lines = [text for way in ways for text in way.before] + [step.text for step in in_loops(xl.after(ways))]
    if lines:
        quoted = " ".join(map(shlex.quote, lines))
        yield Step("keep", f"printf '%s\\n' {quoted} >> {_RC_LOCAL} && chmod +x {_RC_LOCAL}")
