"""CPU use of the VMs of a KVM host: jobs that use as much, spread over the vCPUs as far as it is known."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vcpulab
from kvm_imports import imported, vm
from support import Vcpulab
from vcpulab.imports.work import spread

KERNEL = "Linux n 6.8.12-4-pve #1 SMP x86_64 GNU/Linux\nCONFIG_HZ=250\n"
CPUS = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu},0,0\n" for cpu in range(8))
QM = (
    "      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID\n"
    "       100 web                  running    2048              32.00 1234\n"
)
SCOPE = "/sys/fs/cgroup/qemu.slice/100.scope"


def domstats(name: str, *looks: tuple[float, int, list[int]]) -> str:
    """`virsh domstats` at such times: CPU time of the VM and of each vCPU, ms."""
    text = ""
    for at, total_ms, each_ms in looks:
        vcpus = "".join(
            f"  vcpu.{vcpu}.state=1\n  vcpu.{vcpu}.time={ms}000000\n  vcpu.{vcpu}.wait=0\n"
            for vcpu, ms in enumerate(each_ms)
        )
        text += f"{1764000000 + at}\nDomain: '{name}'\n  state.state=1\n  cpu.time={total_ms}000000\n{vcpus}\n"
    return text


def jobs(domain: dict[str, Any]) -> list[tuple[int, str]]:
    return [(app.get("instance", 1), app["run"]) for app in domain.get("app", [])]


def test_a_load_is_spread_over_all_vcpus(tmp_path: Path) -> None:
    use = domstats("web", (0.5, 1000, []), (10.5, 20_000, []))
    scenario, _ = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1, vcpus=4), use=use)
    web = scenario["domain"]["web"]
    assert jobs(web) == [(4, "4750us")], "190 % of a CPU by four vCPUs"
    assert all(app["assumed"] for app in web["app"])
    run = vcpulab.run(vcpulab.Scenario.from_dict(scenario).change({"run.replications": 1, "run.duration": "1s"}))
    assert run["web.gotten"].mean == pytest.approx(190, abs=4)


def test_each_vcpu_has_the_load_that_was_measured(tmp_path: Path) -> None:
    use = domstats("web", (0, 0, [0, 0, 0, 0]), (10, 13_000, [9_500, 1_000, 1_000, 1_500]))
    scenario, _ = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1, vcpus=4), use=use)
    assert jobs(scenario["domain"]["web"]) == [(1, "9500us"), (3, "1167us")]


def test_a_heading_above_domstats_is_passed_over(tmp_path: Path) -> None:
    use = "\n".join(f"== all ==\n{look}" for look in [domstats("web", (0, 0, [])), domstats("web", (10, 5_000, []))])
    scenario, _ = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1), use=use)
    assert jobs(scenario["domain"]["web"]) == [(2, "2500us")]


def test_counters_that_began_anew_count_from_there(tmp_path: Path) -> None:
    use = domstats("web", (0, 90_000, []), (10, 1_000, []), (20, 6_000, []))
    scenario, _ = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1), use=use)
    assert jobs(scenario["domain"]["web"]) == [(2, "2500us")]


CONFIG = "boot: order=scsi0\ncores: 4\nmemory: 2048\nname: web\n"


@pytest.mark.parametrize(
    "look",
    [
        SCOPE + "/cpu.stat:usage_usec {us}\n" + SCOPE + "/cpu.stat:user_usec {us}\n",
        "[qemu.slice/100.scope]\ncpu.stat:\nusage_usec {us}\nnr_periods 0\n",
        "/sys/fs/cgroup/cpu,cpuacct/qemu.slice/100.scope/cpuacct.usage:{us}000\n",
    ],
)
def test_the_use_of_control_groups_is_that_of_vms(tmp_path: Path, look: str) -> None:
    first, second = f"1764000000.25\n{look.format(us=5_000_000)}", f"1764000010.25\n{look.format(us=17_000_000)}"
    (tmp_path / "100.conf").write_text(CONFIG)
    texts = {"kernel": KERNEL, "cpus": CPUS, "qm": QM}
    for use in ({"use": first + second}, {"first": first, "second": second}):
        scenario, notes = imported(tmp_path, "100.conf", **texts, **use)
        assert jobs(scenario["domain"]["web"]) == [(4, "3ms")], notes


def test_vcpus_have_control_groups_of_their_own(tmp_path: Path) -> None:
    scope = "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2dweb.scope"
    use = (
        f"1764000000\n{scope}/cpu.stat:usage_usec 0\n{scope}/libvirt/vcpu0/cpu.stat:usage_usec 0\n"
        f"{scope}/libvirt/vcpu1/cpu.stat:usage_usec 0\n{scope}/libvirt/emulator/cpu.stat:usage_usec 0\n"
        f"1764000010\n{scope}/cpu.stat:usage_usec 10000000\n{scope}/libvirt/vcpu0/cpu.stat:usage_usec 8000000\n"
        f"{scope}/libvirt/vcpu1/cpu.stat:usage_usec 2000000\n{scope}/libvirt/emulator/cpu.stat:usage_usec 0\n"
    )
    scenario, _ = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1), use=use)
    assert jobs(scenario["domain"]["web"]) == [(1, "8ms"), (1, "2ms")]


PS = "".join(
    f"{line}\n"
    for line in (
        "    PID     TID CLS RTPRIO  NI CGROUP                  COMMAND         COMMAND",
        "   1234    1234  TS      -   0 0::/qemu.slice/100.scope kvm             /usr/bin/kvm -id 100 -name web -smp 2",
        "   1234    1240  TS      -   0 0::/qemu.slice/100.scope CPU 0/KVM       /usr/bin/kvm -id 100 -name web -smp 2",
        "   1234    1241  TS      -   0 0::/qemu.slice/100.scope CPU 1/KVM       /usr/bin/kvm -id 100 -name web -smp 2",
    )
)
SCHEDSTAT = "".join(
    f"17640000{at}.25\n/proc/1234/task/1240/schedstat:{8 * at}00000000 55 7\n"
    f"/proc/1234/task/1241/schedstat:{2 * at}00000000 55 7\n{SCOPE}/cpu.stat:usage_usec {12 * at}00000\n"
    for at in (10, 20)
)


def test_threads_of_vcpus_have_counters_of_their_own(tmp_path: Path) -> None:
    listings = {"kernel": KERNEL, "cpus": CPUS, "ps": PS}
    scenario, notes = imported(tmp_path, **listings, use=SCHEDSTAT)
    assert jobs(scenario["domain"]["web"]) == [(1, "9600us"), (1, "2400us")]
    assert "schedstat" not in notes
    of_threads = "".join(line for line in SCHEDSTAT.splitlines(keepends=True) if "cpu.stat" not in line)
    scenario, _ = imported(tmp_path, **listings, use=of_threads)
    assert jobs(scenario["domain"]["web"]) == [(1, "8ms"), (1, "2ms")]


def test_where_nothing_runs_the_next_step_is_to_list_the_use(command: Vcpulab, tmp_path: Path) -> None:
    listed = {"100.conf": CONFIG, "kernel.txt": KERNEL, "cpus.txt": CPUS, "qm.txt": QM}
    use = f"1764000000\n{SCOPE}/cpu.stat:usage_usec 0\n1764000010\n{SCOPE}/cpu.stat:usage_usec 5000000\n"
    for name, text in (listed | {"use.txt": use}).items():
        (tmp_path / name).write_text(text)
    made = command("import", "kvm", *listed, "--out", "idle.toml")
    lister = "grep -H . /sys/fs/cgroup/qemu.slice/*.scope/cpu.stat; sleep 10; done > use.txt"
    assert f"hint: CPU use first: for n in 1 2; do date +%s.%N; {lister}" in made.stderr
    assert "hint: vcpulab run" not in made.stderr
    made = command("import", "kvm", *listed, "use.txt", "--out", "host.toml")
    assert "hint: vcpulab run host.toml" in made.stderr
    assert "cpu.stat of its control group measured" in (tmp_path / "host.toml").read_text()
    _, notes = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1))
    assert "virsh domstats --cpu-total --vcpu" in notes


def test_use_that_cannot_be_is_reported(tmp_path: Path) -> None:
    use = domstats("web", (0, 0, []), (10, 94_000, []))
    _, notes = imported(tmp_path, kernel=KERNEL, cpus=CPUS, web=vm("web", 1, vcpus=4), use=use)
    assert "web: virsh domstats has 940 % of a pCPU, but its vCPUs 400, which is taken" in notes
    assert "the domains together used 9.4 pCPUs, and the host has 8" in notes


def test_threads_that_share_a_core_are_said_to_have_no_price(tmp_path: Path) -> None:
    threads = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu % 4},0,0\n" for cpu in range(8))
    texts = {
        "kernel": KERNEL,
        "cpus": threads,
        "web": vm("web", 1),
        "use": domstats("web", (0, 0, []), (10, 5_000, [])),
    }
    _, notes = imported(tmp_path, **texts)
    assert "profile generic: in it threads share a core" in notes
    _, notes = imported(tmp_path, profile="xeon-gold-6240", **texts)
    assert "profile xeon-gold-6240: CPU use as virsh domstats measured it contains what threads" in notes
    _, notes = imported(tmp_path, **(texts | {"cpus": CPUS}))
    assert "profile" not in notes


@given(
    used=st.floats(0.2, 6400),
    vcpus=st.integers(1, 128),
    parts=st.lists(st.floats(0, 100), max_size=128),
)
def test_tasks_use_what_was_measured_and_no_vcpu_has_two(used: float, vcpus: int, parts: list[float]) -> None:
    tasks = spread(used, vcpus, parts[:vcpus])
    assert sum(count for count, _ in tasks) <= vcpus
    assert sum(count * percent for count, percent in tasks) == pytest.approx(used, rel=0.02, abs=0.1 * vcpus)
