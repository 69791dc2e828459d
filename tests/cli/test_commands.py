"""The commands that set up a scenario, or a change of one, on a real host, and keep it so."""

import itertools
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import ROOT, Vcpulab
from vcpulab import Scenario, ScenarioError
from vcpulab.advice.lint.document import finding
from vcpulab.advice.lint.host import Finding
from vcpulab.advice.lint.lint import Advice
from vcpulab.advice.tuning.parameters import space
from vcpulab.cli import page
from vcpulab.errors import RequestError
from vcpulab.hypervisors import TOOLSTACKS, Toolstack
from vcpulab.hypervisors.commands import commands, new_steps
from vcpulab.hypervisors.settings import difference
from vcpulab.hypervisors.steps import Step, script
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.parameters import Param


def typed(host: str, domain: str, rest: str = "") -> list[Step]:
    text = f'[host]\nprofile = "exact"\npcpus = 4\n{host}\n[domain.web]\n{domain}\n{rest}'
    return commands(Scenario.from_toml(text))


def texts(steps: list[Step], how: str = "run") -> list[str]:
    return [step.text for step in steps if step.how == how]


@pytest.mark.parametrize(
    ("scheduler", "domain", "expected"),
    [
        ("credit2", "weight = 512", ["xl sched-credit2 -d web -w 512"]),
        ("credit2", "weight = 512\ncap = 50", ["xl sched-credit2 -d web -w 512 -c 50"]),
        ("credit", 'weight = 64\naffinity = "1-2"', ["xl sched-credit -d web -w 64", "xl vcpu-pin web all 1-2"]),
        ('credit"\ngeneration = "xen3.0.3', "cap = 20", ["xm sched-credit -d web -c 20"]),
        ("rtds", "budget_us = 2000", ["xl sched-rtds -d web -v all -p 10000 -b 2000 -e 1"]),
        (
            'sedf"\ngeneration = "xen3.0.3',
            "period = 20000000\nslice = 5000000",
            ["xm sched-sedf web -p 20 -s 5"],
        ),
        ('sedf"\ngeneration = "xen4.4.1', "weight = 3\nextratime = 1", ["xl sched-sedf -d web -e 1 -w 3"]),
        ("bvt", "mcu_adv = 20", ["xm sched-bvt web 20 0 0 2000 1000"]),
        (
            'atropos"\ngeneration = "xen2.0',
            "nat_period = 20000000\nlatency = 5000000",
            ["xm atropos web 20000000 10000000 5000000 1"],
        ),
        ("null", 'vcpus = 2\naffinity = ["0", "1"]', ["xl vcpu-pin web 0 0", "xl vcpu-pin web 1 1"]),
    ],
)
def test_each_releases_own_commands(scheduler: str, domain: str, expected: list[str]) -> None:
    assert texts(typed(f'scheduler = "{scheduler}"', domain)) == expected


@pytest.mark.parametrize(("generation", "times"), [("xen4.17", 1), ("xen4.17.3", 0), ("xen4.19", 0)])
def test_an_option_that_older_releases_lack_is_named_once(generation: str, times: int) -> None:
    """A host before Xen 4.10 has RTDS without extra time, and is simulated by the rules of 4.17."""
    host = f'scheduler = "rtds"\ngeneration = "{generation}"'
    steps = typed(host, "extratime = 0", "[domain.db]\nextratime = 0")
    assert len(texts(steps)) == 2
    notes = [text for text in texts(steps, "cannot") if "`-e` is there from Xen 4.10 on" in text]
    assert len(notes) == times


def test_global_parameters_go_where_the_release_takes_them() -> None:
    steps = typed('scheduler = "credit2"\nratelimit_us = 500\nmigrate_resist_us = 0\nrunqueue = "core"', "")
    options = "sched=credit2 maxcpus=4 sched_ratelimit_us=500 sched_credit2_migrate_resist=0 credit2_runqueue=core"
    # As the host restarts anyway, nothing need be typed afterwards.
    assert texts(steps, "boot") == [grub(options)]
    assert not texts(steps)
    packed = typed('scheduler = "credit"\nsmt_power_savings = true\ntickle_one_idle = false', "")
    assert texts(packed, "boot") == [grub("sched=credit maxcpus=4 sched_smt_power_savings=1 tickle_one_idle_cpu=0")]
    limited = typed('scheduler = "credit"\ngeneration = "xen4.22"\nload_balance_ratelimit_us = 0', "")
    assert texts(limited, "boot") == [grub("sched=credit maxcpus=4 load-balance-ratelimit=0")]
    assert texts(typed('scheduler = "bvt"\nctx_allow = 1000000', "")) == ["xm sched-bvt-ctxallow 1000000"]


def test_what_cannot_be_set_is_said() -> None:
    pool = '[pool.two]\npcpus = "2-3"\nscheduler = "credit2"\nmigrate_resist_us = 0\nratelimit_us = 0\n'
    action = '[[action]]\nat = "2s"\nop = "adjust-global"\n{}\n'
    steps = typed('scheduler = "credit2"', "", pool + action.format("migrate_resist_us = 9"))
    assert "xl sched-credit2 -s -p two -r 0" in texts(steps)
    pooled, later = texts(steps, "cannot")
    assert "cannot be set for one pool" in pooled
    assert later == "credit2 (xen4.17): migrate_resist_us cannot be changed while the host runs"
    enhanced = typed('scheduler = "enhanced"\npasses = 1', 'weight = 5\naffinity = "0"')
    assert texts(enhanced, "cannot")
    assert not texts(enhanced)
    assert not texts(enhanced, "boot")
    table = 'major_frame_ns = 9\nentries = [{ domain = "web", runtime = "9ns" }]'
    arinc = typed(f'scheduler = "arinc653"\n{table}', "")
    assert ["no command sets" in text for text in texts(arinc, "cannot")] == [True, True]
    fine = typed('scheduler = "sedf"', "period = 1500000\nslice = 1000000")
    assert "whole multiples of 1000000 ns" in texts(fine, "cannot")[0]


def test_actions_come_in_order_and_follow_the_domain() -> None:
    steps = commands(Scenario.load(ROOT / "scenarios" / "pools.toml"))
    assert [step.text for step in steps if step.at == "5s"] == ["xl cpupool-migrate batch rt"]
    pool = '[pool.rt]\npcpus = "3"\nscheduler = "rtds"\n'
    adjust = '[[action]]\nat = "3s"\nop = "adjust"\ndomain = "web"\nbudget_us = 4000\n'
    moved = '[[action]]\nat = "2s"\nop = "move-pool"\ndomain = "web"\npool = "rt"\n'
    pause = '[[action]]\nat = "1500ms"\nop = "pause"\ndomain = "web"\n'
    later = [step for step in typed('scheduler = "credit"', "", pool + adjust + moved + pause) if step.at]
    assert [step.text.split()[1] for step in later] == ["pause", "cpupool-migrate", "sched-rtds"]


def test_the_life_of_domains() -> None:
    steps = commands(Scenario.load(ROOT / "scenarios" / "life-cycle.toml"))
    assert [step.text for step in steps if step.at is None] == [
        grub("sched=credit2 maxcpus=2"),
        "xl sched-credit2 -d batch -w 512",
        "sed -i '$a cpu_weight = 512' /etc/xen/batch.cfg",
    ]
    assert [(step.at, step.text) for step in steps if step.at is not None] == [
        ("2s", "xl create late.cfg"),
        ("4s", "xl save batch batch.save"),
        ("5s", "xl vcpu-set steady 1"),
        ("6s", "xl vcpu-set steady 2"),
        ("7s", "xl restore batch.save"),
        ("7s", "xl sched-credit2 -d batch -w 512"),
        ("8s", "xl reboot late"),
        ("10s", "xl shutdown late"),
        ("11s", "xl create late.cfg"),
        ("11s", "xl pause batch"),
    ]
    unplug = '[[action]]\nat = "1s"\nop = "offline"\ndomain = "web"\nvcpu = 1\n'
    (inside,) = texts(typed('scheduler = "credit"', "vcpus = 3", unplug), "cannot")
    assert inside.endswith("in the guest: echo 0 > /sys/devices/system/cpu/cpu1/online")
    nowhere = typed('scheduler = "round-robin"', 'start = "2s"')
    assert texts(nowhere, "cannot")[-1] == "domain web: round-robin (v1) is in no release of Xen"


# ---- changes ----

HOST = """\
[host]
profile = "generic"
pcpus = 4
scheduler = "credit"
[nic.eth0]
driver_domain = "dom0"
[disk.sda]
driver_domain = "dom0"
[pool.rt]
pcpus = "3"
scheduler = "rtds"
[domain.dom0]
vcpus = 4
weight = 512
driver_domain = true
[domain.web]
vcpus = 2
nic = { driver_domain = "dom0" }
disk = { driver_domain = "dom0" }
app = [{ kind = "hog" }]
[domain.batch]
count = 3
app = [{ kind = "hog" }]
"""
BASE = Scenario.from_toml(HOST)
OLD = Scenario.from_toml("""\
[host]
profile = "exact"
pcpus = 4
scheduler = "credit"
generation = "xen3.3.0"
[domain.web]
app = [{ kind = "hog" }]
[domain.batch]
app = [{ kind = "hog" }]
""")
UNIT = "/etc/systemd/system/xendomains.service.d"
UUID = "$(xe vm-list name-label={} --minimal)"


def grub(options: str) -> str:
    line = f'GRUB_CMDLINE_XEN_DEFAULT="$GRUB_CMDLINE_XEN_DEFAULT {options}"'
    return f"echo '{line}' >> /etc/default/grub.d/vcpulab.cfg && update-grub"


def at_start(*lines: str) -> str:
    quoted = " ".join(shlex.quote(line) for line in ("[Service]", *lines))
    return f"mkdir -p {UNIT} && printf '%s\\n' {quoted} >> {UNIT}/vcpulab.conf"


def xen_cmdline(option: str) -> str:
    return f"/opt/xensource/libexec/xen-cmdline --set-xen {option}"


def in_rc_local(line: str) -> str:
    return f"printf '%s\\n' {shlex.quote(line)} >> /etc/rc.d/rc.local && chmod +x /etc/rc.d/rc.local"


def vm_param_set(domain: str, params: str) -> str:
    return f"xe vm-param-set uuid={UUID.format(domain)} {params}"


CHANGES: list[tuple[str, dict[str, Any], dict[str, list[str]]]] = [
    (
        "a weight: nothing else of the domain, and nothing of the host",
        {"domain.web.weight": 1024},
        {
            "xl": ["xl sched-credit -d web -w 1024", "sed -i '$a cpu_weight = 1024' /etc/xen/web.cfg"],
            "xapi": ["xl sched-credit -d web -w 1024", vm_param_set("web", "VCPUs-params:weight=1024")],
            "libvirt": [],
        },
    ),
    (
        "alike domains: a loop",
        {f"domain.batch{number}.cap": 50 for number in (1, 2, 3)},
        {
            "xl": [
                "for d in batch1 batch2 batch3; do xl sched-credit -d $d -c 50; done",
                "for d in batch1 batch2 batch3; do sed -i '$a cap = 50' /etc/xen/$d.cfg; done",
            ],
            "xapi": [
                "for d in batch1 batch2 batch3; do xl sched-credit -d $d -c 50; done",
                f"for d in batch1 batch2 batch3; do {vm_param_set('$d', 'VCPUs-params:cap=50')}; done",
            ],
            "libvirt": [],
        },
    ),
    (
        "Dom0 has no configuration",
        {"domain.dom0.weight": None},
        {
            "xl": [
                "xl sched-credit -d Domain-0 -w 256",
                at_start("ExecStartPost=-/usr/sbin/xl sched-credit -d Domain-0 -w 256"),
            ],
            "xapi": [
                "xl sched-credit -d Domain-0 -w 256",
                in_rc_local("xl sched-credit -d Domain-0 -w 256"),
            ],
            "libvirt": [],
        },
    ),
    (
        "another scheduler: not the number of pCPUs; what the domains have is set anew",
        {"host.scheduler": "credit2"},
        {
            "xl": [
                grub("sched=credit2"),
                "xl sched-credit2 -d Domain-0 -w 512",
                at_start("ExecStartPost=-/usr/sbin/xl sched-credit2 -d Domain-0 -w 512"),
            ],
            "xapi": [
                xen_cmdline("sched=credit2"),
                "xl sched-credit2 -d Domain-0 -w 512",
                in_rc_local("xl sched-credit2 -d Domain-0 -w 512"),
            ],
            "libvirt": [],
        },
    ),
    (
        "parameters of the scheduler",
        {"host.tslice_ms": 5, "host.ratelimit_us": 0},
        {
            "xl": ["xl sched-credit -s -t 5 -r 0", grub("sched_credit_tslice_ms=5 sched_ratelimit_us=0")],
            "xapi": [
                "xl sched-credit -s -t 5 -r 0",
                xen_cmdline("sched_credit_tslice_ms=5"),
                xen_cmdline("sched_ratelimit_us=0"),
            ],
            "libvirt": [],
        },
    ),
    (
        "pinning",
        {"domain.web.affinity": ["0", "1-2"]},
        {
            "xl": [
                "xl vcpu-pin web 0 0",
                "xl vcpu-pin web 1 1-2",
                'sed -i \'$a cpus = ["0", "1-2"]\' /etc/xen/web.cfg',
            ],
            "xapi": [
                "xl vcpu-pin web 0 0",
                "xl vcpu-pin web 1 1-2",
                vm_param_set("web", "'VCPUs-params:mask=0;1,2'"),
            ],
            "libvirt": [
                "virsh vcpupin web 0 0 --live --config",
                "virsh vcpupin web 1 1-2 --live --config",
            ],
        },
    ),
    (
        "Dom0 pinned by commands at each start",
        {"domain.dom0.affinity": "0-1"},
        {
            "xl": [
                "xl vcpu-pin Domain-0 all 0-1",
                at_start("ExecStartPost=-/usr/sbin/xl vcpu-pin Domain-0 all 0-1"),
            ],
            "xapi": ["xl vcpu-pin Domain-0 all 0-1", in_rc_local("xl vcpu-pin Domain-0 all 0-1")],
            "libvirt": [],
        },
    ),
    (
        "Dom0 pinned as an option of the hypervisor pins it",
        {"domain.dom0.vcpus": 2, "domain.dom0.affinity": ["0", "1"]},
        {
            "xl": [
                grub("dom0_max_vcpus=2 dom0_vcpus_pin"),
                "xl vcpu-pin Domain-0 0 0",
                "xl vcpu-pin Domain-0 1 1",
            ],
            "xapi": [
                xen_cmdline("dom0_max_vcpus=2"),
                "xl vcpu-pin Domain-0 0 0",
                "xl vcpu-pin Domain-0 1 1",
                xen_cmdline("dom0_vcpus_pin"),
            ],
        },
    ),
    (
        "numbers of vCPUs",
        {"domain.dom0.vcpus": 2, "domain.web.vcpus": 4, "domain.batch1.vcpus": 3},
        {
            "xl": [
                grub("dom0_max_vcpus=2"),
                "xl vcpu-set web 4",
                "xl vcpu-set batch1 3",
                "sed -i '$a vcpus = 4; maxvcpus = 4' /etc/xen/web.cfg",
                "sed -i '$a vcpus = 3; maxvcpus = 3' /etc/xen/batch1.cfg",
            ],
            "xapi": [
                xen_cmdline("dom0_max_vcpus=2"),
                *(
                    f"xe vm-shutdown vm={name} && {vm_param_set(name, f'VCPUs-max={n} VCPUs-at-startup={n}')}"
                    f" && xe vm-start vm={name}"
                    for name, n in (("web", 4), ("batch1", 3))
                ),
            ],
            "libvirt": [
                "virsh setvcpus web 4 --maximum --config",
                "virsh setvcpus web 4 --config",
                "virsh setvcpus batch1 3 --maximum --config",
                "virsh setvcpus batch1 3 --config",
            ],
        },
    ),
    (
        "into another pool, with parameters there",
        {"domain.web.pool": "rt", "domain.web.budget_us": 2000},
        {
            "xl": [
                "xl cpupool-migrate web rt",
                "xl sched-rtds -d web -v all -p 10000 -b 2000 -e 1",
                "sed -i '$a pool = \"rt\"' /etc/xen/web.cfg",
                at_start("ExecStartPost=-/usr/sbin/xl sched-rtds -d web -v all -p 10000 -b 2000 -e 1"),
            ],
            "xapi": ["xl cpupool-migrate web rt", "xl sched-rtds -d web -v all -p 10000 -b 2000 -e 1"],
        },
    ),
    (
        "more pCPUs for a pool",
        {"pool.rt.pcpus": "2-3"},
        {"xl": ["xl cpupool-cpu-remove Pool-0 2", "xl cpupool-cpu-add rt 2"]},
    ),
    (
        "another scheduler for a pool: xl cannot change it in place",
        {"pool.rt.scheduler": "credit2"},
        {
            "xl": [
                "xl cpupool-destroy rt",
                """xl cpupool-create 'name="rt"' 'sched="credit2"' 'cpus="3"'""",
            ],
            "libvirt": [],
        },
    ),
    (
        "where devices are served",
        {"domain.web.nic.driver_vcpu": 3, "domain.web.disk.driver_vcpu": 1, "nic.eth0.vcpu": 2},
        {
            "xl": [
                "for i in $(grep -w eth0 /proc/interrupts | cut -d: -f1); "
                "do echo 2 > /proc/irq/$i/smp_affinity_list; done",
                'for p in $(pgrep "vif$(xl domid web)\\.0\\b"); do taskset -pc 3 $p; done; '
                'for i in $(grep "vif$(xl domid web)\\.0\\b" /proc/interrupts | cut -d: -f1); '
                "do echo 3 > /proc/irq/$i/smp_affinity_list; done",
                'for p in $(pgrep "^(blkback\\.)?$(xl domid web)\\.[a-z]"); do taskset -pc 1 $p; done',
            ],
            "libvirt": [],
        },
    ),
    ("a driver domain's default is Linux's own, and nothing to type", {"domain.web.nic.driver_vcpu": 0}, {"xl": []}),
    ("what no toolstack sets", {"domain.web.weight": 256}, {"xl": [], "xapi": [], "libvirt": []}),
]


@pytest.mark.parametrize(
    ("changes", "toolstack", "expected"),
    [
        pytest.param(changes, toolstack, lines, id=f"{name}: {toolstack}")
        for name, changes, by_toolstack in CHANGES
        for toolstack, lines in by_toolstack.items()
    ],
)
def test_exactly_the_change_is_typed(changes: Mapping[str, Any], toolstack: Toolstack, expected: list[str]) -> None:
    steps = new_steps(BASE, BASE.change(changes), toolstack)
    assert [line for line in script(steps) if not line.startswith("#")] == expected


@pytest.mark.parametrize(
    ("changes", "toolstack", "reason"),
    [
        ({"host.pcpus": 8}, "xl", "host.pcpus = 8: takes a machine with more pCPUs than 4"),
        ({"host.profile": "exact"}, "xl", "host.profile, host.costs: requires another machine"),
        ({"host.generation": "xen4.4.1"}, "xl", "credit (xen4.4.1): requires another release of the hypervisor"),
        ({"domain.web.pool": "rt"}, "xapi", "domain web: XAPI does not keep this; type it again after each start"),
        (
            {"domain.web.weight": 512},
            "libvirt",
            "`credit` is a Xen scheduler and does not exist on a KVM host",
        ),
        (
            {"domain.web.nic.driver_vcpu": 3},
            "xl",
            "netback of web: on vCPU 3 of dom0: holds until the domain restarts, and while irqbalance does not move it",
        ),
        ({"domain.web.disk.driver_vcpu": 2}, "xapi", "blkback of web: on vCPU 2 of dom0: tapdisk serves it"),
        (
            {"disk.sda.vcpu": 2},
            "xl",
            "interrupts of disk sda: on vCPU 2 of dom0: /proc/irq/*/smp_affinity_list of its controller, which the "
            "scenario does not name",
        ),
    ],
)
def test_what_no_command_does_is_said(changes: Mapping[str, Any], toolstack: Toolstack, reason: str) -> None:
    assert reason in texts(new_steps(BASE, BASE.change(changes), toolstack), "cannot")


SERVER = Scenario.from_toml("""\
[host]
profile = "generic"
scheduler = "credit2"
topology = { sockets = 2, cores = 8, threads = 2, nodes = 2 }
[domain.dom0]
vcpus = 4
driver_domain = true
[domain.web]
vcpus = 4
app = [{ kind = "hog" }]
""")
OFF = {"host.topology.threads": 1}
NODE = {"pool.Pool-node1.pcpus": "16-31", "pool.Pool-node1.scheduler": "credit2"}
ENABLE = "xenpm set-sched-smt enable"
SPLIT = ["xl cpupool-numa-split", "xl cpupool-rename Pool-node0 Pool-0"]
TIMES = "pCPU n of the scenario is then CPU 2 × n of the host: where a command names CPUs, type those"
NOSMT = (
    "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT nosmt\"' >> /etc/default/grub.d/vcpulab.cfg && "
    "update-grub"
)


def pool_made(name: str, scheduler: str, cpus: str) -> list[str]:
    """A pool is made at once, and at each start of the host."""
    lines = [
        f"xl cpupool-cpu-remove Pool-0 {cpus}",
        f"""xl cpupool-create 'name="{name}"' 'sched="{scheduler}"' 'cpus="{cpus}"'""",
    ]
    return [*lines, at_start(*(f"ExecStartPre=-/usr/sbin/{line}" for line in lines))]


SERVERS: list[tuple[str, dict[str, Any], dict[str, list[str]]]] = [
    (
        "run queues: only at boot",
        {"host.runqueue": "core", "host.max_cpus_runqueue": 8},
        {
            "xl": [grub("credit2_runqueue=core sched_credit2_max_cpus_runqueue=8")],
            "xapi": [xen_cmdline("credit2_runqueue=core"), xen_cmdline("sched_credit2_max_cpus_runqueue=8")],
            "libvirt": [],
        },
    ),
    (
        "power savings: at once, and kept at boot",
        {"host.smt_power_savings": 1},
        {
            "xl": [ENABLE, grub("sched_smt_power_savings=1")],
            "xapi": [ENABLE, xen_cmdline("sched_smt_power_savings=1")],
            "libvirt": [],
        },
    ),
    (
        "power savings of a host that restarts anyway",
        {"host.smt_power_savings": 1, "host.scheduler": "credit"},
        {"xl": [grub("sched=credit sched_smt_power_savings=1")]},
    ),
    (
        "threads offline: at once, and kept at boot; not the number of pCPUs",
        OFF,
        {
            "xl": ["xen-hptool smt-disable", grub("smt=0")],
            "xapi": ["xen-hptool smt-disable", xen_cmdline("smt=0")],
            "libvirt": ["echo off > /sys/devices/system/cpu/smt/control", NOSMT],
        },
    ),
    (
        "threads offline and cores scheduled: at boot alone",
        {**OFF, "host.sched_gran": "core"},
        {"xl": [grub("smt=0 sched-gran=core")], "xapi": [xen_cmdline("smt=0"), xen_cmdline("sched-gran=core")]},
    ),
    (
        "cores scheduled",
        {"host.sched_gran": "core"},
        {"xl": [grub("sched-gran=core")], "xapi": [xen_cmdline("sched-gran=core")], "libvirt": []},
    ),
    (
        "a pool for each node: the tool makes them",
        {**NODE, "domain.web.pool": "Pool-node1"},
        {
            "xl": [
                *SPLIT,
                "xl cpupool-migrate web Pool-node1",
                "sed -i '$a pool = \"Pool-node1\"' /etc/xen/web.cfg",
                at_start(*(f"ExecStartPre=-/usr/sbin/{line}" for line in SPLIT)),
            ],
        },
    ),
    (
        "a pool for each node, one with another scheduler: the tool does not make that",
        {**NODE, "pool.Pool-node1.scheduler": "credit"},
        {
            "xl": [
                *pool_made("Pool-node1", "credit", "16-31"),
            ],
        },
    ),
    (
        "a pool for each node, and more vCPUs of Dom0 than its node has: the tool would take them away",
        {**NODE, "domain.dom0.vcpus": 20},
        {
            "xl": [
                grub("dom0_max_vcpus=20"),
                *pool_made("Pool-node1", "credit2", "16-31"),
            ],
        },
    ),
    (
        "a pool of two cores",
        {"pool.quiet.pcpus": "28-31", "pool.quiet.scheduler": "null"},
        {
            "xl": [
                *pool_made("quiet", "null", "28-31"),
            ],
        },
    ),
    (
        "a governor: at once, and kept at boot",
        {"host.governor": "ondemand"},
        {
            "xl": ["xenpm set-scaling-governor ondemand", grub("cpufreq=xen:ondemand")],
            "xapi": ["xenpm set-scaling-governor ondemand", xen_cmdline("cpufreq=xen:ondemand")],
            "libvirt": ["cpupower frequency-set -g ondemand"],
        },
    ),
    (
        "where memory is: libvirt alone has a word for it",
        {"domain.web.memory_nodes": [0, 1]},
        {"xl": [], "xapi": [], "libvirt": ["virsh numatune web --nodeset 0-1 --config"]},
    ),
    (
        "soft affinity",
        {"domain.web.soft_affinity": "16-31", "domain.dom0.soft_affinity": "0-15"},
        {
            "xl": [
                "xl vcpu-pin Domain-0 all - 0-15",
                "xl vcpu-pin web all - 16-31",
                "sed -i '$a cpus_soft = \"16-31\"' /etc/xen/web.cfg",
                at_start("ExecStartPost=-/usr/sbin/xl vcpu-pin Domain-0 all - 0-15"),
            ],
            "xapi": [
                "xl vcpu-pin Domain-0 all - 0-15",
                "xl vcpu-pin web all - 16-31",
                in_rc_local("xl vcpu-pin Domain-0 all - 0-15"),
            ],
            "libvirt": [],
        },
    ),
]


@pytest.mark.parametrize(
    ("changes", "toolstack", "expected"),
    [
        pytest.param(changes, toolstack, lines, id=f"{name}: {toolstack}")
        for name, changes, by_toolstack in SERVERS
        for toolstack, lines in by_toolstack.items()
    ],
)
def test_what_concerns_threads_and_nodes_is_typed(
    changes: Mapping[str, Any], toolstack: Toolstack, expected: list[str]
) -> None:
    steps = new_steps(SERVER, SERVER.change(changes), toolstack)
    assert [line for line in script(steps) if not line.startswith("#")] == expected


def test_numbers_of_cpus_are_told_when_threads_go() -> None:
    off = SERVER.change(OFF)
    assert TIMES in texts(new_steps(SERVER, off), "cannot")
    assert TIMES in texts(new_steps(SERVER, off, "libvirt"), "cannot")
    back = new_steps(off, SERVER)
    assert texts(back) == ["xen-hptool smt-enable"]
    assert not texts(back, "cannot")
    spread = SERVER.change({"host.topology.numbering": "spread"})
    assert not texts(new_steps(spread, spread.change(OFF)), "cannot"), "the first threads have the first numbers"
    taken = new_steps(SERVER, SERVER.change({"host.topology.threads": 4}))
    assert "host.pcpus = 64: takes a machine with more pCPUs than 32" in texts(taken, "cannot")


def test_a_machine_is_not_typed() -> None:
    steps = commands(SERVER)
    assert "host.topology: takes a machine of 32 threads on 16 cores, 2 sockets, 2 nodes" in texts(steps, "cannot")
    assert texts(steps, "boot") == [grub("sched=credit2 dom0_max_vcpus=4")], "no maxcpus"
    (off,) = (text for text in texts(commands(SERVER.change(OFF)), "cannot") if "topology" in text)
    assert off.endswith(
        "16 cores, 2 sockets, 2 nodes; of a machine with more threads smt=0 leaves the first of each core"
    )


def test_memory_stays_where_it_was_placed() -> None:
    moved = SERVER.change({"domain.web.memory_nodes": 1})
    said = "domain web: memory on node 1: memory is placed when a domain is created, on the nodes of its affinity then"
    assert any(text.startswith(said) for text in texts(new_steps(SERVER, moved), "cannot"))
    assert any(text.startswith(said) for text in texts(commands(moved, "xapi"), "cannot"))
    assert not texts(new_steps(moved, SERVER), "cannot")


def test_a_governor_is_set_where_it_is_written() -> None:
    assert "cpufreq" not in texts(commands(SERVER), "boot")[0], "Xen has one of its own"
    written = commands(SERVER.change({"host.governor": "performance"}))
    assert texts(written, "boot") == [grub("sched=credit2 cpufreq=xen:performance dom0_max_vcpus=4")]
    assert not texts(written), "it restarts anyway"


def test_power_savings_are_switched_while_the_host_runs() -> None:
    action = '[[action]]\nat = "2s"\nop = "adjust-global"\nsmt_power_savings = 1\n'
    (step,) = (step for step in typed('scheduler = "credit2"', "", action) if step.at)
    assert (step.how, step.text) == ("run", ENABLE)
    pool = '[pool.two]\npcpus = "2-3"\nscheduler = "credit2"\nsmt_power_savings = 1\n'
    (whole,) = texts(typed('scheduler = "credit2"', "", pool), "cannot")
    assert whole.endswith("the boot option sched_smt_power_savings holds for the whole host")


def test_pools_of_xen_4_4_take_pcpus_one_by_one() -> None:
    pool = '[pool.two]\npcpus = "2-3"\nscheduler = "credit"\ngeneration = "xen4.4.1"\n'
    assert texts(typed('scheduler = "credit"\ngeneration = "xen4.4.1"', "", pool)) == [
        "xl cpupool-cpu-remove Pool-0 2",
        "xl cpupool-cpu-remove Pool-0 3",
        """xl cpupool-create 'name="two"' 'sched="credit"' 'cpus=["2", "3"]'""",
    ]


def test_a_pool_that_goes_gives_its_pcpus_back() -> None:
    without = Scenario.from_toml(HOST.replace('[pool.rt]\npcpus = "3"\nscheduler = "rtds"\n', ""))
    steps = new_steps(BASE, without)
    assert texts(steps) == ["xl cpupool-destroy rt", "xl cpupool-cpu-add Pool-0 3"]
    assert texts(steps, "cannot") == ["pool rt: take it out where it is made at each start of the host"]


def test_before_xl_all_is_kept_by_commands_at_boot() -> None:
    steps = new_steps(OLD, OLD.change({"domain.web.weight": 512, "domain.batch.affinity": "1"}))
    assert texts(steps) == ["xm sched-credit -d web -w 512", "xm vcpu-pin batch all 1"]
    assert texts(steps, "keep") == [
        "sed -i -e '1a xm sched-credit -d web -w 512' -e '1a xm vcpu-pin batch all 1' /etc/rc.local"
    ]
    (boot,) = texts(new_steps(OLD, OLD.change({"host.scheduler": "sedf"})), "boot")
    assert boot == "sed -i '/^[[:space:]]*kernel.*xen.*gz/ s/$/ sched=sedf/' /boot/grub/menu.lst"
    assert [step.how for step in new_steps(OLD, OLD.change({"domain.web.weight": 512}), "xapi")] == ["cannot"]


# ---- the tools ----

NUMBERS = {
    ("credit", "-w"): range(1, 65536),
    ("credit", "-c"): range(201),
    ("credit", "-t"): range(1, 1001),
    ("credit", "-r"): [0, *range(100, 500_001)],
    ("credit", "-m"): range(100_001),
    ("credit2", "-w"): range(1, 65536),
    ("credit2", "-c"): range(201),
    ("credit2", "-r"): [0, *range(100, 500_001)],
    ("rtds", "-p"): range(1, 2**32),
    ("rtds", "-b"): range(1, 2**32),
}
"""What `xl(1)` of Xen 4.17 takes, for a domain of two vCPUs."""

SETTINGS = [
    (policy.name, generation.name, generation.tools, param)
    for policy in schedulers()
    for generation in policy.generations
    for param in generation.params
    if param.kind != "timetable"
]


def values_of(param: Param) -> "st.SearchStrategy[Any]":
    if param.kind == "choice":
        return st.sampled_from(param.choices)
    if param.kind == "flag":
        return st.integers(0, 1)
    low, high = param.min, param.max
    return st.one_of(
        st.sampled_from([low, high, *param.also]), st.integers(low, min(high, low + 1000)), st.integers(low, high)
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_every_value_of_every_parameter_is_typed_as_the_tool_takes_it_or_refused(data: st.DataObject) -> None:
    scheduler, generation, tools, param = data.draw(st.sampled_from(SETTINGS))
    name, value = param.name, data.draw(values_of(param))
    written = f"{name} = {json.dumps(value)}"
    host = f'scheduler = "{scheduler}"\ngeneration = "{generation}"\n'
    try:
        steps = typed(
            host + (written if param.scope == "global" else ""),
            "vcpus = 2\n" + (written if param.scope == "domain" else ""),
        )
    except ScenarioError:
        # It does not go together with the other parameters.
        return
    expected = str(value // tools.unit_of(name)) if isinstance(value, int) else value
    set_to = re.split(r"[\s=\"']+", " ".join(step.text for step in steps if step.how in ("run", "boot")))
    refused = [step for step in steps if step.how == "cannot" and re.search(rf"\b{name}\b", step.text)]
    # A new domain of SEDF's has its defaults, and no command sets one of them alone.
    has_already = scheduler == "sedf" and value == param.default and not refused
    assert has_already or bool(refused) != (expected in set_to), "it is either set or refused"
    for step in steps:
        words = shlex.split(step.text) if step.how == "run" else []
        if words[:1] == ["xl"] and words[1].startswith("sched-"):
            policy = words[1].removeprefix("sched-")
            for option, given_value in itertools.pairwise(words):
                if (policy, option) in NUMBERS:
                    assert int(given_value) in NUMBERS[policy, option], step.text
            if policy == "rtds":
                assert int(words[words.index("-b") + 1]) <= int(words[words.index("-p") + 1])


@pytest.mark.parametrize("written", ["base_slice_us = 2000", 'cgroup_mode = "smp"', 'preempt = "full"'])
def test_parameters_of_linux_are_not_typed_on_a_xen_host(written: str) -> None:
    steps = typed(f'scheduler = "linux-eevdf"\ngeneration = "7.3"\n{written}', "vcpus = 2\n")
    name = written.partition(" ")[0]
    assert not [
        step.text for step in steps if step.how in ("run", "keep") and (name in step.text or "2000" in step.text)
    ]
    assert any(f"no command sets {name} of" in text for text in texts(steps, "cannot"))


@pytest.mark.parametrize("given_range", ["web.weight=0..4", "web.weight=0,256"])
def test_tune_tries_nothing_that_the_tool_refuses(given_range: str) -> None:
    with pytest.raises(RequestError, match="1 to 65535; xl takes no other weight"):
        space(BASE, [given_range])
    nowhere = Scenario.from_toml(HOST.replace('scheduler = "credit"', 'scheduler = "enhanced"'))
    with pytest.raises(RequestError, match="for a new domain"):
        space(nowhere, [given_range])


# ---- the script ----


def blocks() -> list[list[Step]]:
    changed = [new_steps(BASE, BASE.change(changes), tool) for _, changes, _ in CHANGES for tool in TOOLSTACKS["xen"]]
    shown = [commands(Scenario.load(ROOT / "scenarios" / name)) for name in ("pools.toml", "life-cycle.toml")]
    return [*changed, *shown, new_steps(OLD, OLD.change({"domain.web.weight": 9, "host.scheduler": "sedf"}))]


def test_a_shell_can_read_everything() -> None:
    lines = "\n".join(line for steps in blocks() for line in script(steps))
    checked = subprocess.run(["bash", "-n"], input=lines, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_what_keeps_it_leaves_files_that_hold_it(tmp_path: Path) -> None:
    """In a folder for `/`: by the tools that are not `xl`."""
    for folder in ("etc/xen", "etc/default/grub.d", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("batch1", "batch2", "batch3", "web"):
        # An editor that ends no line leaves such a file.
        (tmp_path / f"etc/xen/{name}.cfg").write_text("vcpus = 1\ncpu_weight = 256")
    (tmp_path / "bin/update-grub").symlink_to(shutil.which("true") or "true")
    changes: dict[str, Any] = {f"domain.batch{number}.weight": 64 for number in (1, 2, 3)}
    changes |= {"domain.dom0.weight": 1024, "host.tslice_ms": 5, "domain.web.affinity": "0-1"}
    for change in (changes, {**changes, "host.tslice_ms": 10}):
        steps = new_steps(BASE, BASE.change(change))
        text = "\n".join(script([step for step in steps if step.how == "keep"])).replace("/etc/", f"{tmp_path}/etc/")
        path = f"PATH={tmp_path}/bin:$PATH\n"
        subprocess.run(["bash", "-e"], input=path + text, text=True, check=True)
    assert (tmp_path / "etc/xen/batch2.cfg").read_text().splitlines() == [
        "vcpus = 1",
        "cpu_weight = 256",
        "cpu_weight = 64",
        "cpu_weight = 64",
    ]
    assert 'cpus = "0-1"' in (tmp_path / "etc/xen/web.cfg").read_text().splitlines()
    shown = subprocess.run(
        ["sh", "-c", f". {tmp_path}/etc/default/grub.d/vcpulab.cfg; echo $GRUB_CMDLINE_XEN_DEFAULT"],
        text=True,
        capture_output=True,
        check=True,
    )
    assert shown.stdout == "sched_credit_tslice_ms=5 sched_credit_tslice_ms=10\n"
    assert (tmp_path / f"{UNIT[1:]}/vcpulab.conf").read_text().splitlines() == 2 * [
        "[Service]",
        "ExecStartPost=-/usr/sbin/xl sched-credit -d Domain-0 -w 1024",
    ]


def test_findings_say_when_each_command_holds(capsys: pytest.CaptureFixture[str]) -> None:
    after = BASE.change({"domain.dom0.vcpus": 2, "domain.web.weight": 9, "host.profile": "exact"})
    advice = Advice(Finding("domain.web.weight", "a reason", rule="any"), None, difference(BASE, after))
    page.print_blocks(finding("web.toml", advice))
    told = [line.strip() for line in capsys.readouterr().out.splitlines()[2:] if line.strip()]
    assert [line for line in told if not line.startswith("$ ")] == [
        "takes a restart of the host:",
        "at run time:",
        "to keep it after a restart:",
        "what no command does or keeps:",
        "host.profile, host.costs: requires another machine",
    ]


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_findings_are_broken_where_the_terminal_ends(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    after = BASE.change({"domain.web.weight": 9})
    reason = " ".join(f"web waits for {percent} % of the time," for percent in range(30))
    advice = Advice(Finding("domain.web.weight", reason, rule="any"), [], difference(BASE, after))
    page.print_blocks(finding("web.toml", advice))
    lines = capsys.readouterr().out.splitlines()
    told = lines[1 : next(place for place, line in enumerate(lines) if line.startswith("  with"))]
    assert columns - 20 < max(map(len, told)) <= columns
    assert not any(line.lstrip().startswith("%") for line in told), "a number and its unit are in one line"
    assert " ".join(" ".join(told).split()) == reason


def test_the_output_is_a_script(command: Vcpulab) -> None:
    file = str(ROOT / "scenarios" / "pools.toml")
    lines = command("xl", "commands", file).stdout.splitlines()
    steps = json.loads(command("xl", "commands", file, "--format", "json").stdout)
    assert [line for line in lines if not line.startswith("#")] == [
        step["text"] for step in steps if step["how"] != "cannot"
    ]
    xapi = command("xl", "commands", file, "--toolstack", "xapi").stdout
    assert xen_cmdline("sched=credit2") in xapi.splitlines()


def test_a_file_says_whose_commands(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "xcp.toml").write_text(
        HOST.replace("pcpus = 4", 'pcpus = 4\ntoolstack = "xapi"\nratelimit_us = 500', 1)
    )
    assert xen_cmdline("sched_ratelimit_us=500") in command("xl", "commands", "xcp.toml").stdout
    assert grub("sched=credit") not in command("xl", "commands", "xcp.toml").stdout
    wrong = command("xl", "commands", "xcp.toml", "--toolstack", "xend")
    assert wrong.returncode == 2
