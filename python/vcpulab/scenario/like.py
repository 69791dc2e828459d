"""A scenario file of a host with so many VMs of each kind."""

import json
from collections.abc import Mapping

KINDS = {
    "web": "web servers, with clients outside",
    "service": "services that compute a little, often",
    "batch": "batch machines, that compute all the time",
    "idle": "idle machines",
}
"""The kinds of VMs, and what they are."""

_DOMAINS = {
    "web": 'vcpus = 2\nnic = {NIC}\napp = [{ kind = "web-server" }]',
    "service": 'vcpus = 1\napp = [{ kind = "periodic", run = "2ms", period = "10ms" }]',
    "batch": 'vcpus = 2\napp = [{ kind = "hog", instance = 2 }]',
    "idle": 'vcpus = 1\napp = [{ kind = "periodic", run = "50us", period = "100ms" }]',
}
_CLIENT = '[client.web-users]\nkind = "open-loop"\nserver = "web"\nrate = 200                # requests per second'


def text_of(threads: int, scheduler: str, vms: Mapping[str, int]) -> str:
    """The file, commented.

    Args:
        threads: pCPUs of the host.
        scheduler: its scheduler.
        vms: how many VMs of each of `KINDS`.

    Examples:
        >>> from vcpulab.scenario.scenario import Scenario
        >>> scenario = Scenario.from_toml(text_of(4, "credit2", {"web": 1, "batch": 2}))
        >>> list(scenario.domains), scenario.copies()
        (['dom0', 'web', 'batch1', 'batch2'], {'domain': {'batch': ['batch1', 'batch2']}})

        Schedulers of Linux have KVM hosts:

        >>> list(Scenario.from_toml(text_of(4, "linux-eevdf", {"web": 1})).domains)
        ['web']
    """
    count = sum(vms.values())
    kvm = scheduler.startswith("linux-")
    hypervisor = 'hypervisor = "kvm"        # its own threads do the work of devices\n' if kvm else ""
    dom0 = "# Owns the devices, and does their work for the others.\n[domain.dom0]\nvcpus = 1\ndriver_domain = true"
    nic = "{}" if kvm else '{ driver_domain = "dom0" }'
    parts = [
        "# Every number here is a guess to start from.\n"
        f'name = "a host with {count} VM{"" if count == 1 else "s"}"\n\n'
        '[run]\nduration = "2s"\nwarmup = "500ms"\nreplications = 5\n\n'
        f'[host]\n{hypervisor}profile = "generic"       # what things cost\n'
        f"{f'pcpus = {threads}':<26}# with SMT two threads share a core, and do less than two pCPUs here\n"
        f"scheduler = {json.dumps(scheduler)}",
        *([] if kvm else [dom0]),
    ]
    for kind, number in vms.items():
        if not number:
            continue
        # The clients of such VMs are one for each, too.
        first, last = (f"{kind}{index:0{len(str(number))}}" for index in (1, number))
        several = f"{f'count = {number}':<26}# {first} to {last}\n" if number > 1 else ""
        parts.append(f"# {KINDS[kind].capitalize()}.\n[domain.{kind}]\n{several}{_DOMAINS[kind].replace('{NIC}', nic)}")
        if kind == "web":
            parts.append(_CLIENT)
    return "\n\n".join(parts) + "\n"
