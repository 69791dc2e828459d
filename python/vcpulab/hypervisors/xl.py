"""What is typed on a host of `xl`: Debian, Ubuntu and others whose Dom0 has GRUB and systemd; before Xen 4.1 `xm`.

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
from vcpulab.hypervisors.xen import way

_KEYS = {"weight": "cpu_weight", "affinity": "cpus", "soft_affinity": "cpus_soft"}
"""The names in `xl.cfg(5)`, where they are others."""
_UNIT = "/etc/systemd/system/xendomains.service.d"


def steps(change: Change) -> list[Step]:
    """What is typed, in order: what takes a restart, what holds at once, what keeps it, what cannot be typed."""
    old = change.first.tools["tool"] == "xm"
    ways = [way(setting) for setting in change.settings]
    boot = [option for one in ways for option in one.boot]
    kept = [option for one in ways for option in one.options]
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
    """What is typed while the host runs, each at its time."""
    for at, setting in change.later:
        found = way(setting)
        yield from (Step("run", text, at, found.domain) for text in found.run)
        yield from (Step("cannot", text, at, found.domain) for text in found.cannot)


def of_domains(ways: Iterable[Way]) -> dict[str, dict[str, Any]]:
    """By domain: what its configuration must say."""
    keys: dict[str, dict[str, Any]] = {}
    for one in ways:
        if one.domain is not None and one.keys:
            keys.setdefault(one.domain, {}).update(one.keys)
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
    """The service that starts the domains runs them."""
    lines = [
        *(f"ExecStartPre={_executed(text)}" for one in ways for text in one.before),
        *(f"ExecStartPost={_executed(step.text)}" for step in in_loops(after(ways))),
    ]
    if lines:
        quoted = " ".join(shlex.quote(line) for line in ["[Service]", *lines])
        yield Step("keep", f"mkdir -p {_UNIT} && printf '%s\\n' {quoted} >> {_UNIT}/vcpulab.conf")


def after(ways: Iterable[Way]) -> Iterator[Step]:
    """What is to be repeated when the domains are there."""
    return (Step("keep", text, domain=one.domain) for one in ways for text in one.after)


def _executed(command: str) -> str:
    """A command as systemd takes it, which has variables of its own. If it fails, the domains start all the same."""
    if "$" in command:
        command = command.replace("$", "$$")
        return f"-/bin/sh -c '{command}'"
    return f"-/usr/sbin/{command}"


def _in_rc_local(ways: list[Way]) -> Iterator[Step]:
    """It runs when everything else has started."""
    lines = [text for one in ways for text in one.before] + [step.text for step in in_loops(after(ways))]
    lines += [text for one in ways if one.keys for text in one.run]
    if lines:
        yield Step("keep", f"sed -i {' '.join('-e ' + shlex.quote(f'1a {line}') for line in lines)} /etc/rc.local")
