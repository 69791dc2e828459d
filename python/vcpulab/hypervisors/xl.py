"""Commands for a host of `xl`: Debian, Ubuntu and others whose Dom0 has GRUB and systemd; before Xen 4.1 `xm`.

Kept are options at boot in `/etc/default/grub.d` (Debian's `grub-mkconfig` reads all `*.cfg` there after
`/etc/default/grub`; of an option that is given twice the last counts), settings of domains in their `/etc/xen/NAME.cfg`
(`xl.cfg(5)`; of a key that is given twice the last counts), and the rest by commands when `xendomains` has started the
domains, or before it does. In the days of `xm` the first are in GRUB's `menu.lst`, and all others in `/etc/rc.local`.
"""

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from vcpulab.hypervisors.settings import Change
from vcpulab.hypervisors.steps import Step, in_loops
from vcpulab.hypervisors.way import Way, cannot, run
from vcpulab.hypervisors.xen import way_of

_KEYS = {"weight": "cpu_weight", "affinity": "cpus", "soft_affinity": "cpus_soft"}
"""Names in `xl.cfg(5)` that differ from the scenario's."""
_UNIT = "/etc/systemd/system/xendomains.service.d"


def steps(change: Change) -> list[Step]:
    """The steps, in order: after a restart, at once, to keep the settings, and settings without a command."""
    old = change.first.tools.tool == "xm"
    ways = [way_of(setting) for setting in change.settings]
    boot = [option for way in ways for option in way.boot]
    kept = [option for way in ways for option in way.options]
    if boot:
        boot, kept = [*boot, *kept], []
    return [
        *(Step("boot", _at_boot(boot, old=old)) for _ in boot[:1]),
        *run(ways),
        *(Step("keep", _at_boot(kept, old=old)) for _ in kept[:1]),
        *_configured(ways),
        *(_in_rc_local(ways) if old else _at_start(ways)),
        *cannot(ways),
        *later(change),
    ]


def later(change: Change) -> Iterator[Step]:
    """The steps of timed settings, typed while the host runs."""
    for at, setting in change.later:
        way = way_of(setting)
        yield from (Step("run", text, at, way.domain) for text in way.run)
        yield from (Step("cannot", text, at, way.domain) for text in way.cannot)


def of_domains(ways: Iterable[Way]) -> dict[str, dict[str, Any]]:
    """The keys of each domain's configuration, by domain."""
    keys: dict[str, dict[str, Any]] = {}
    for way in ways:
        if way.domain is not None and way.keys:
            keys.setdefault(way.domain, {}).update(way.keys)
    return keys


def _at_boot(options: Iterable[str], *, old: bool) -> str:
    text = " ".join(options)
    if old:
        return f"sed -i '/^[[:space:]]*kernel.*xen.*gz/ s/$/ {text}/' /boot/grub/menu.lst"
    line = f'GRUB_CMDLINE_XEN_DEFAULT="$GRUB_CMDLINE_XEN_DEFAULT {text}"'
    return f"echo '{line}' >> /etc/default/grub.d/vcpulab.cfg && update-grub"


def _configured(ways: Iterable[Way]) -> Iterator[Step]:
    for domain, keys in of_domains(ways).items():
        pairs = "; ".join(f"{_KEYS.get(key, key)} = {_value(value)}" for key, value in keys.items())
        yield Step("keep", f"sed -i '$a {pairs}' /etc/xen/{domain}.cfg", domain=domain)


def _value(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    return f'"{value}"' if isinstance(value, str) else f"[{', '.join(map(_value, _listed(value)))}]"


def _listed(value: object) -> Iterable[object]:
    assert isinstance(value, tuple)
    return value


def _at_start(ways: list[Way]) -> Iterator[Step]:
    """The step that adds commands to the service that starts the domains."""
    lines = [
        *(f"ExecStartPre={_executed(text)}" for way in ways for text in way.before),
        *(f"ExecStartPost={_executed(step.text)}" for step in in_loops(after(ways))),
    ]
    if lines:
        quoted = " ".join(shlex.quote(line) for line in ["[Service]", *lines])
        yield Step("keep", f"mkdir -p {_UNIT} && printf '%s\\n' {quoted} >> {_UNIT}/vcpulab.conf")


def after(ways: Iterable[Way]) -> Iterator[Step]:
    """Commands to repeat after the domains are created."""
    return (Step("keep", text, domain=way.domain) for way in ways for text in way.after)


def _executed(command: str) -> str:
    """A command in a systemd unit, where `$` is escaped. If the command fails, the domains still start."""
    if "$" in command:
        command = command.replace("$", "$$")
        return f"-/bin/sh -c '{command}'"
    return f"-/usr/sbin/{command}"


def _in_rc_local(ways: list[Way]) -> Iterator[Step]:
    """The step that adds commands to `/etc/rc.local`, which runs after all other services."""
    lines = [text for way in ways for text in way.before] + [step.text for step in in_loops(after(ways))]
    lines += [text for way in ways if way.keys for text in way.run]
    if lines:
        yield Step("keep", f"sed -i {' '.join('-e ' + shlex.quote(f'1a {line}') for line in lines)} /etc/rc.local")
