"""The commands that set up a scenario on a real host."""

import json
import shlex

import pytest

from support import ROOT, Vcpulab
from vcpulab import Scenario
from vcpulab.hypervisors.xl import Step, commands


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


def test_global_parameters_go_where_the_release_takes_them() -> None:
    steps = typed('scheduler = "credit2"\nratelimit_us = 500\nmigrate_resist_us = 0\nrunqueue = "core"', "")
    assert texts(steps, "boot") == ["sched=credit2 maxcpus=4 sched_credit2_migrate_resist=0 credit2_runqueue=core"]
    assert texts(steps) == ["xl sched-credit2 -s -r 500"]
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
    assert [text.split()[3] for text in texts(arinc, "cannot")] == ["sets", "sets"]
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
        "sched=credit2 maxcpus=2",
        "xl sched-credit2 -d batch -w 512",
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
    assert texts(nowhere, "cannot")[-1] == "domain web: round-robin (v1) is in no hypervisor"


def test_the_output_is_a_script(command: Vcpulab) -> None:
    file = str(ROOT / "scenarios" / "pools.toml")
    lines = command("xl", "commands", file).stdout.splitlines()
    run = [
        step["text"]
        for step in json.loads(command("xl", "commands", file, "--format", "json").stdout)
        if step["how"] == "run"
    ]
    assert [line for line in lines if not line.startswith("#")] == run
    assert all(shlex.split(line)[0] == "xl" for line in run)
