"""What Dom0 reads after a boot, and what is kept of it beside each recording."""

from __future__ import annotations

import json
import shlex
from typing import Any

from archive import Files, text
from experiments import ADDRESSES, DEFAULTS, DOM0, DOMAIN, NUMBERS, Boot, Kind, Setting

SETTING_SECONDS = 2
"""From the begin of a period: for how long `xl` may set parameters, and show them."""
WARM_UP_SECONDS = 1
"""From then to the window of the recording."""
MARGIN_SECONDS = 1
"""From the window to the end of the period: `xentrace` ends, `xl` lists."""

OPTIONS = {"tslice_ms": "-t", "ratelimit_us": "-r"}
"""What `xl sched-credit` and `xl sched-credit2` call parameters of the scheduler as a whole."""


def files(boot: Boot) -> Files:
    """A configuration for each guest, and the plan that `dom0-init` follows."""
    texts = {f"{guest['name']}.cfg": _configuration(guest, boot.kind) for guest in boot.kind.guests}
    texts["plan.sh"] = _plan(boot)
    return {f"experiment/{name}": text(contents) for name, contents in texts.items()}


def table(boot: Boot, setting: Setting, release: str) -> str:
    """The recording's `experiment.toml`."""
    domains = boot.domains(setting)
    guests = [guest | domains[guest["name"]] for guest in boot.kind.guests]
    lines = {
        "guests_kind": boot.kind.name,
        "scheduler": boot.scheduler,
        "setting": setting.name,
        "parameters": boot.parameters(setting),
        "dom0": domains[DOM0],
        "seed": boot.seed,
        "seconds": boot.seconds,
        "xen": release,
        "pcpus": boot.kind.pcpus,
        "pools": boot.kind.pools,
    }
    written = "".join(f"{key} = {_toml(value)}\n" for key, value in lines.items())
    return written + "guests = [\n" + "".join(f"  {_toml(guest)},\n" for guest in guests) + "]\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)  # texts without escapes, whole numbers, lists of them


def _configuration(guest: dict[str, Any], kind: Kind) -> str:
    words = [f"{word}={guest[key]}" for key, word in (NUMBERS | ADDRESSES).items() if key in guest]
    extra = " ".join(["console=hvc0 quiet rdinit=/init", f"nm={guest['name']}", *words])
    lines = [
        f'name="{guest["name"]}"',
        'type="pv"',
        'kernel="/guest/vmlinux"',
        'ramdisk="/guest/initrd"',
        "memory=192",
        f"vcpus={guest.get('vcpus', 1)}",
        f'extra="{extra}"',
    ]
    if "address" in guest:
        lines.append('vif=["bridge=guests"]')
    if "disk_bytes" in guest:
        lines.append(f'disk=["phy:/dev/ram{kind.names.index(guest["name"])},xvda,w"]')
    if "pool" in guest:
        lines.append(f'pool="{guest["pool"]}"')
    return "\n".join(lines) + "\n"


def _plan(boot: Boot) -> str:
    tool = f"xl sched-{boot.scheduler}"
    guests, pools = boot.kind.guests, boot.kind.pools
    set_up = [f"xl cpupool-cpu-remove Pool-0 {pcpu}" for pcpus in pools.values() for pcpu in pcpus]
    for pool, pcpus in pools.items():
        inline = f'name="{pool}" sched="{boot.scheduler}" cpus="{",".join(map(str, pcpus))}"'
        set_up.append(f"xl cpupool-create {' '.join(shlex.quote(word) for word in inline.split())}")
    period_seconds = SETTING_SECONDS + WARM_UP_SECONDS + boot.seconds + MARGIN_SECONDS
    workers = {guest["name"]: guest.get("vcpus", 1) for guest in guests}
    lines = [
        f'guests="{" ".join(f"{name}:{count}" for name, count in workers.items())}"',
        f'recordings="{" ".join(setting.name for setting in boot.settings)}"',
        f"network={'yes' if any('address' in guest for guest in guests) else ''}",
        f"storage={'yes' if any('disk_bytes' in guest for guest in guests) else ''}",
        f"setting_seconds={SETTING_SECONDS}",
        f"warm_up_seconds={WARM_UP_SECONDS}",
        f"record_seconds={boot.seconds}",
        f"period_seconds={period_seconds}",
        f"set_up() {{ {' && '.join(set_up) or ':'}; }}",
        'set_parameters() { case "$1" in',
    ]
    parameters = DEFAULTS[boot.scheduler]
    domains: dict[str, dict[str, Any]] = {}
    for setting in boot.settings:
        before, parameters = parameters, boot.parameters(setting)
        domains_before, domains = domains, boot.domains(setting)
        orders = []
        for name, values in domains.items():
            changed = {key for key, value in values.items() if value != domains_before.get(name, DOMAIN)[key]}
            if changed & {"weight", "cap"}:
                orders.append(f"{tool} -d {name} -w {values['weight']} -c {values['cap']}")
            if changed & {"cpus", "soft"}:
                orders.append(f"xl vcpu-pin {name} all {values['cpus']} {values['soft']}")
        if parameters != before:
            orders.append(f"{tool} -s {' '.join(f'{OPTIONS[key]} {value}' for key, value in parameters.items())}")
        lines.append(f"{setting.name}) {' && '.join(orders) or ':'} ;;")
    shown = f'{{ {tool} && {tool} -s; }} >"$1"' + (' && xl cpupool-list -c >"${1%/*}/pools.txt"' if pools else "")
    lines += ["esac; }", f"show_parameters() {{ {shown}; }}", ""]
    return "\n".join(lines)
