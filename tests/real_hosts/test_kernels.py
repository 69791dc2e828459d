"""Kernels by their names and by files of their schedulers: which rules are taken, and how sure that is."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvm_imports import imported, vm
from support import Vcpulab
from vcpulab.errors import VcpulabError
from vcpulab.formats import read
from vcpulab.formats.linux_host import Linux, read_linux
from vcpulab.hosts.kernel import assumed_params, kernel_of, params_of, scheduler_warnings
from vcpulab.hosts.kernel_release import release_of
from vcpulab.hosts.kernel_rules import Evidence, Fact, Sign, rules_of
from vcpulab.hypervisors.linux import by_cpus
from vcpulab.scenario.catalogue import schedulers
from vcpulab.twin.twin import Twin

CFS, EEVDF = "linux-cfs", "linux-eevdf"


@dataclass(frozen=True)
class Host:
    """What `uname` prints, and what is to be taken from it."""

    uname: str
    scheduler: str
    generation: str
    hz: int | None
    sure: bool


HOSTS = [
    Host(
        "Linux a 5.10.0-32-cloud-amd64 #1 SMP Debian 5.10.223-1 (2024-08-10) x86_64 GNU/Linux", CFS, "5.10", 250, True
    ),
    Host(
        "Linux a 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) x86_64 GNU/Linux",
        CFS,
        "6.1",
        250,
        True,
    ),
    Host("Linux 6.12.48+deb13-amd64", EEVDF, "6.12", 250, True),
    Host("6.12.117+deb12-cloud-amd64", EEVDF, "6.12", 250, True),
    Host("version: Linux 6.16.12+deb13-cloud-amd64, Debian 6.16.12-1~bpo13+1", EEVDF, "6.12", 250, True),
    Host("6.17.13+deb13-amd64", EEVDF, "6.17", 250, True),
    Host("6.18.15+deb13-cloud-amd64", EEVDF, "6.18", 250, True),
    Host("6.19.14+deb13-cloud-amd64", EEVDF, "7.0", 250, True),
    Host("Linux 7.0.13+deb13-cloud-amd64", EEVDF, "7.0", 250, True),
    Host("7.1.13+deb13-amd64", EEVDF, "7.1", 250, True),
    Host("7.2.13+deb14-amd64", EEVDF, "7.2", 250, True),
    Host("7.3.4+deb13-cloud-amd64", EEVDF, "7.3", 250, True),
    Host("5.4.0-200-generic", CFS, "5.10", 250, False),
    Host("Linux u 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 2023 x86_64 GNU/Linux", CFS, "5.15", 250, False),
    Host("Linux u 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC x86_64 GNU/Linux", EEVDF, "6.6", 250, False),
    Host(
        "Linux version 6.8.0-45-generic (buildd@lcy02-amd64-115) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4) "
        "13.2.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024",
        EEVDF,
        "6.6",
        250,
        False,
    ),
    Host("6.8.0-1015-aws", EEVDF, "6.6", 250, False),
    Host("6.11.0-29-generic", EEVDF, "6.6", 1000, False),
    Host("6.14.0-37-generic", EEVDF, "6.12", 1000, False),
    Host("6.17.0-14-generic", EEVDF, "6.17", 1000, False),
    Host("7.0.0-10-generic", EEVDF, "7.0", 1000, False),
    Host("6.12.5-061205-generic", EEVDF, "6.12", None, True),
    Host("5.15.102-1-pve", CFS, "5.15", 250, False),
    Host(
        "Linux p 6.8.12-4-pve #1 SMP PREEMPT_DYNAMIC PMX 6.8.12-4 (2024-11-06T15:04Z) x86_64 GNU/Linux",
        EEVDF,
        "6.6",
        250,
        False,
    ),
    Host("6.11.11-2-pve", EEVDF, "6.6", 250, False),
    Host("6.14.8-2-pve", EEVDF, "6.12", None, False),
    Host("6.17.2-1-pve", EEVDF, "6.17", None, False),
    Host("7.0.6-1-pve", EEVDF, "7.0", None, False),
    Host("4.18.0-553.el8_10.x86_64", CFS, "5.10", 1000, False),
    Host("Linux r 5.14.0-427.13.1.el9_4.x86_64 #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux", CFS, "5.15", 1000, False),
    Host("6.12.0-55.9.1.el10_0.x86_64", EEVDF, "6.12", 1000, False),
    Host("6.17.7-1.el9.elrepo.x86_64", EEVDF, "6.17", None, True),
    Host("5.15.0-205.149.5.1.el9uek.x86_64", CFS, "5.15", 1000, False),
    Host("6.12.0-1.23.3.el10uek.x86_64", EEVDF, "6.12", 1000, False),
    Host("5.14.21-150500.55.19-default", CFS, "5.15", 250, False),
    Host("Linux s 6.4.0-150600.23.25-default #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux", CFS, "6.1", 250, False),
    Host("6.12.0-160000.5-default", EEVDF, "6.12", None, False),
    Host("6.17.7-300.fc43.x86_64", EEVDF, "6.17", 1000, True),
    Host("7.1.4-200.fc44.x86_64", EEVDF, "7.1", 1000, True),
    Host("6.1.112-122.189.amzn2023.x86_64", CFS, "6.1", None, False),
    Host("5.10.239-236.958.amzn2.x86_64", CFS, "5.10", None, False),
    Host("6.12.40-64.114.amzn2023.x86_64", EEVDF, "6.12", None, False),
    Host("6.6.44-talos", EEVDF, "6.6", None, False),
    Host("6.6.87.2-microsoft-standard-WSL2", EEVDF, "6.6", None, False),
    Host("6.17.7-2-cachyos", EEVDF, "6.17", None, False),
    Host("6.12.5", EEVDF, "6.12", None, True),
    Host("7.3.0-rc3", EEVDF, "7.3", None, False),
    Host("9.1.2", EEVDF, "7.3", None, False),
]
FEATURES_OF_7_1 = "/sys/kernel/debug/sched/features:PLACE_LAG RUN_TO_PARITY DELAY_DEQUEUE HRTICK HRTICK_DL NI_RATE\n"
FEATURES_OF_6_12 = "/sys/kernel/debug/sched/features:PLACE_LAG RUN_TO_PARITY DELAY_DEQUEUE NO_HRTICK NO_HRTICK_DL\n"


def numbers(release: str) -> tuple[int, int]:
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def registered(scheduler: str, generation: str) -> str:
    """The generation, or the nearest older one that the registry has, or else its oldest."""
    (policy,) = (policy for policy in schedulers() if policy.name == scheduler)
    names = [entry.name for entry in policy.generations]
    return next((name for name in reversed(names) if numbers(name) <= numbers(generation)), names[0])


def linux_of(folder: Path, text: str) -> Linux:
    (folder / "kernel.txt").write_text(text)
    return read_linux(folder / "kernel.txt")


@pytest.mark.parametrize("host", HOSTS, ids=[host.uname.split("(")[0] for host in HOSTS])
def test_a_kernels_name_tells_its_rules(tmp_path: Path, host: Host) -> None:
    scenario, notes = imported(tmp_path, vm=vm("web", 1), kernel=f"{host.uname}\n")
    kernel = kernel_of(linux_of(tmp_path, host.uname))
    assert kernel is not None
    assert kernel.release is not None
    assert (kernel.scheduler, scenario["host"]["scheduler"]) == (host.scheduler, host.scheduler)
    assert kernel.generation == registered(host.scheduler, host.generation)
    assert kernel.exact == (host.sure and kernel.generation == host.generation)
    assert scenario["host"]["generation"] == kernel.generation
    assert kernel.release.hz == host.hz
    assert scenario["host"]["hz"] == host.hz or 250
    taken = f"Linux {kernel.release.name}: {kernel.scheduler} as in {kernel.generation}"
    assert kernel.explanation.startswith(taken)
    assert (f"{taken} is assumed: " in notes) == (not kernel.exact)
    assert "hz = " in notes


def test_the_text_of_a_scenario_says_whose_rules_are_taken(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "web.xml").write_text(vm("web", 1))
    (tmp_path / "kernel.txt").write_text("6.12.48+deb13-amd64\n")
    made = command("import", "kvm", "web.xml", "kernel.txt")
    assert made.returncode == 0, made.stderr
    assert "# Linux 6.12.48+deb13-amd64: linux-eevdf as in 6.12\n" in made.stdout
    (tmp_path / "kernel.txt").write_text("6.12.0-55.9.1.el10_0.x86_64\n")
    made = command("import", "kvm", "web.xml", "kernel.txt")
    assert "linux-eevdf as in 6.12 is assumed: kernels of RHEL carry later changes" in made.stderr
    assert "# * Linux 6.12.0-55.9.1.el10_0.x86_64: linux-eevdf as in 6.12 is assumed" in made.stdout


@pytest.mark.parametrize(
    ("text", "scheduler", "generation", "reason"),
    [
        # A distribution took the scheduler from a later release.
        (f"6.12.0-210.el10.x86_64\n{FEATURES_OF_7_1}", EEVDF, "7.1", "HRTICK is among the scheduler's features"),
        ("6.12.5\n/sys/kernel/debug/sched/cgroup_mode:concur\n", EEVDF, "7.3", "cgroup_mode is in /sys/kernel"),
        ("5.14.0-700.el9.x86_64\n/sys/kernel/debug/sched/base_slice_ns:2800000\n", EEVDF, "6.6", "`base_slice_ns`"),
        ("6.6.1\n/sys/kernel/debug/sched/latency_ns:24000000\n", CFS, "6.5", "`latency_ns`"),
        # They agree with the name.
        (f"7.1.13+deb13-amd64\n{FEATURES_OF_7_1}", EEVDF, "7.1", None),
        (f"6.12.117+deb13-amd64\n{FEATURES_OF_6_12}", EEVDF, "6.12", None),
        ("5.10.0-32-amd64\nkernel.sched_latency_ns = 24000000\n", CFS, "5.10", None),
        # Nothing names the kernel.
        ("/sys/kernel/debug/sched/base_slice_ns:2800000\n", EEVDF, "6.12", "uname -a > kernel.txt"),
        ("/sys/kernel/debug/sched/latency_ns:24000000\n", CFS, "6.5", "uname -a > kernel.txt"),
        ("/sys/kernel/debug/sched/cgroup_mode:smp\n", EEVDF, "7.3", "uname -a > kernel.txt"),
        (FEATURES_OF_7_1, EEVDF, "7.1", "uname -a > kernel.txt"),
    ],
)
def test_files_of_the_scheduler_count_more_than_the_name(
    tmp_path: Path, text: str, scheduler: str, generation: str, reason: str | None
) -> None:
    kernel = kernel_of(linux_of(tmp_path, text))
    assert kernel is not None
    assert (kernel.scheduler, kernel.generation) == (scheduler, registered(scheduler, generation))
    if kernel.generation == generation:
        assert kernel.exact == (reason is None)
        assert reason is None or reason in kernel.explanation
    scenario, _ = imported(tmp_path, vm=vm("web", 1), kernel=text)
    assert (scenario["host"]["scheduler"], scenario["host"]["generation"]) == (scheduler, kernel.generation)


def test_parameters_that_a_kernel_does_not_have_are_left_out_aloud(tmp_path: Path) -> None:
    scope = "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2dweb.scope"
    groups = f"{scope}/cpu.weight:200\n{scope}/cpu.idle:1\n"
    scenario, notes = imported(tmp_path, vm=vm("web", 1), groups=groups, kernel="4.18.0-553.el8_10.x86_64\n")
    assert scenario["domain"]["web"].get("idle", 0) == 0
    assert "web: idle = 1 is left out: linux-cfs as in 5.10 does not have it" in notes
    scenario, notes = imported(tmp_path, vm=vm("web", 1), groups=groups, kernel="6.12.117+deb13-amd64\n")
    assert scenario["domain"]["web"]["idle"] == 1
    assert "does not have it" not in notes


def test_of_contradicting_files_the_newer_one_counts() -> None:
    both = [Sign("new", Fact.BASE_SLICE), Sign("old", Fact.BASE_SLICE, present=False)]
    assert rules_of((5, 15, 1), both).scheduler == EEVDF
    assert rules_of((6, 1, 1), both).decisive == (both[0],)
    assert rules_of((6, 12, 1), both[1:]).evidence is Evidence.FILES


def test_what_names_no_kernel_is_a_note_with_the_command(tmp_path: Path) -> None:
    scenario, notes = imported(tmp_path, vm=vm("web", 1), kernel="CONFIG_HZ=1000\n")
    assert (scenario["host"]["scheduler"], scenario["host"]["hz"]) == (EEVDF, 1000)
    assert "no listing says which kernel (`uname -a > kernel.txt` does); that of Linux 6.6 and later, as in" in notes
    assert release_of("generic") is release_of(None) is None


@pytest.mark.parametrize(
    "text",
    [
        "/proc/version:Linux version 6.1.0-18-amd64 (gcc) #1 SMP Debian 6.1.76-1 (2024-02-01)\n",
        "# cat /proc/version\nLinux version 6.1.0-18-amd64 (gcc) #1 SMP Debian 6.1.76-1 (2024-02-01)\n",
        "/proc/sys/kernel/osrelease:6.1.0-18-amd64\n",
        "kernel.osrelease = 6.1.0-18-amd64\n",
        "/boot/config-6.1.0-18-amd64:CONFIG_HZ=250\n",
    ],
)
def test_files_that_name_the_kernel(tmp_path: Path, text: str) -> None:
    (tmp_path / "kernel.txt").write_text(text)
    (tmp_path / "web.xml").write_text(vm("web", 1))
    linux = read(tmp_path / "kernel.txt").holds
    kernel = kernel_of(linux)
    assert kernel is not None
    assert kernel.explanation == "Linux 6.1.0-18-amd64: linux-cfs as in 6.1"


def test_of_several_kernels_in_boot_the_running_one_counts(tmp_path: Path) -> None:
    boot = "/boot/config-6.8.0-45-generic:CONFIG_HZ=250\n/boot/config-6.11.0-29-generic:CONFIG_HZ=1000\n"
    assert params_of(linux_of(tmp_path, "6.8.0-45-generic\n" + boot), None) == {"hz": 250}
    assert params_of(linux_of(tmp_path, "6.11.0-29-generic #29-Ubuntu SMP\n" + boot), None) == {"hz": 1000}
    assert params_of(linux_of(tmp_path, "6.14.0-37-generic\n" + boot), None) == {}
    assert kernel_of(linux_of(tmp_path, boot)) is None


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024\n", "`uname -v`"),
        ('PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\n', "/etc/os-release"),
        ("FreeBSD h 14.1-RELEASE FreeBSD 14.1-RELEASE amd64\n", "a system that is not Linux"),
        ("pve-manager/8.2.4/faa83925c9641325 (running kernel: 6.8.12-4-pve)\n", "`pveversion`"),
    ],
)
def test_what_names_no_release_has_the_command_that_does(tmp_path: Path, text: str, title: str) -> None:
    (tmp_path / "kernel.txt").write_text(text)
    with pytest.raises(VcpulabError) as error:
        read(tmp_path / "kernel.txt")
    assert title in str(error.value)
    assert "uname -a > kernel.txt" in str(error.value)


def test_a_bpf_scheduler_is_warned_of(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "web.xml").write_text(vm("web", 1))
    state = "6.12.48+deb13-amd64\n/sys/kernel/sched_ext/state:{}\n/sys/kernel/sched_ext/root/ops:{}\n"
    (tmp_path / "kernel.txt").write_text(state.format("enabled", "scx_rusty"))
    made = command("import", "kvm", "web.xml", "kernel.txt")
    assert made.returncode == 0, made.stderr
    assert "warning: sched_ext is enabled: a BPF scheduler (scx_rusty) decides which thread runs" in made.stderr
    (tmp_path / "kernel.txt").write_text(state.format("disabled", ""))
    made = command("import", "kvm", "web.xml", "kernel.txt")
    assert "sched_ext" not in made.stderr + made.stdout


def test_requests_that_end_at_ticks_are_warned_of_where_they_do_not() -> None:
    features = {"/sys/kernel/debug/sched/features": "PLACE_LAG NO_HRTICK"}
    warned = [
        release
        for release in ("6.12.1", "7.0.13", "7.1.1", "7.3.4")
        for linux in [Linux(release, features)]
        if any("NO_HRTICK" in note for note in scheduler_warnings(linux, kernel_of(linux)))
    ]
    assert warned == ["7.1.1", "7.3.4"]


@pytest.mark.parametrize(
    ("path", "value", "note"),
    [
        ("features", "PLACE_LAG NO_RUN_TO_PARITY NEXT_BUDDY", "says NEXT_BUDDY, NO_RUN_TO_PARITY (/sys/kernel"),
        ("features", "PLACE_LAG RUN_TO_PARITY NO_NEXT_BUDDY", None),
        ("cgroup_mode", "up smp (concur) max tasks", None),
    ],
)
def test_rules_that_somebody_changed_are_named(path: str, value: str, note: str | None) -> None:
    linux = Linux("7.3.4", {f"/sys/kernel/debug/sched/{path}": value})
    notes = list(scheduler_warnings(linux, kernel_of(linux)))
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


@pytest.mark.parametrize(
    ("kernel", "model", "reason"),
    [
        ("7.0.13\n/sys/kernel/debug/sched/preempt:full (lazy)\n", "lazy", None),
        ("6.12.48\n/sys/kernel/debug/sched/preempt:none (voluntary) full\n", "voluntary", None),
        # What holds counts more than what the kernel was booted with.
        ("7.0.13\n/sys/kernel/debug/sched/preempt:(full) lazy\n/proc/cmdline:ro preempt=lazy\n", "full", None),
        ("6.17.13\n/proc/cmdline:ro preempt=none quiet\n", "none", None),
        ("6.16.12+deb13-amd64\nCONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "lazy", None),
        (
            "6.12.48+deb13-rt-amd64 #1 SMP PREEMPT_RT Debian 6.12.48-1\n",
            "full",
            "nothing else of PREEMPT_RT is",
        ),
        ("6.18.2 #1 SMP PREEMPT Mon Dec 1 12:00:00 UTC 2025\n", "full", None),
        ("6.16.12+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.16.12-1\n", "lazy", "kernels of Debian usually have it"),
        ("6.12.48+deb13-amd64\n", "voluntary", "preempt = voluntary is assumed: no listing has it"),
        ("7.0.13\n/sys/kernel/debug/sched/preempt:none (voluntary)\n", None, "takes one of full, lazy"),
    ],
)
def test_the_preemption_model_is_imported(tmp_path: Path, kernel: str, model: str | None, reason: str | None) -> None:
    scenario, notes = imported(tmp_path, vm=vm("web", 1), kernel=kernel)
    assert scenario["host"].get("preempt") == model
    assert ("preempt = " in notes or "PREEMPT_RT" in notes) == (reason is not None)
    assert reason is None or reason in notes


@pytest.mark.parametrize(("listed", "mode"), [("smp", "smp"), ("up (max) concur", "max"), ("", None)])
def test_the_mode_of_control_groups_is_imported(tmp_path: Path, listed: str, mode: str | None) -> None:
    kernel = f"7.3.4+deb14-amd64\n/sys/kernel/debug/sched/cgroup_mode:{listed}\n"
    scenario, notes = imported(tmp_path, vm=vm("web", 1), kernel=kernel)
    assert scenario["host"].get("cgroup_mode") == mode
    assert "cgroup_mode =" not in notes


def test_files_that_tell_the_rules_are_not_left_out_aloud(tmp_path: Path) -> None:
    kernel = f"7.1.13+deb13-amd64\n{FEATURES_OF_7_1}/sys/kernel/sched_ext/state:disabled\n"
    _, notes = imported(tmp_path, vm=vm("web", 1), kernel=f"{kernel}/sys/kernel/debug/sched/nr_migrate:32\n")
    assert "no field of a scenario says /sys/kernel/debug/sched/nr_migrate = 32; left out" in notes
    assert "features =" not in notes
    assert "sched_ext" not in notes


@pytest.mark.parametrize(
    ("release", "cpus", "base_slice"),
    [
        ("6.6.44", 1, 750),
        ("6.8.12-4-pve", 64, 3000),
        ("6.11.0-29-generic", 4, 2250),
        ("6.12.117+deb13-amd64", 8, 2800),
        ("6.14.8-2-pve", 16, 3000),
        ("6.15.1", 2, 1400),
        ("7.3.4+deb13-amd64", 1, 700),
    ],
)
def test_base_slices_by_release(release: str, cpus: int, base_slice: int) -> None:
    """Where it is not the default of the generation, the scenario has it, and a note says so."""
    kernel = kernel_of(Linux(release))
    assert kernel is not None
    assumed = {param.name: param for param in assumed_params(kernel, ["hz", "preempt"], cpus)}
    default = by_cpus("base_slice_us", cpus, kernel.generation)
    assert (assumed["base_slice_us"].value if assumed else default) == base_slice
    assert (base_slice == default) == (not assumed)
    assert not list(assumed_params(kernel, ["hz", "base_slice_us", "preempt"], cpus))


def test_the_base_slice_of_an_early_6_12_is_doubtful() -> None:
    (param,) = assumed_params(kernel_of(Linux("6.12.0-55.9.1.el10_0.x86_64")), ["hz", "preempt"], 8)
    assert (param.name, param.value) == ("base_slice_us", 2800)
    assert "(its first ones have 3000)" in param.note


@dataclass(frozen=True)
class Mutation:
    """A change of a text at a place."""

    at: int
    removed: int
    inserted: str

    def of(self, text: str) -> str:
        return text[: self.at] + self.inserted + text[self.at + self.removed :]


MUTATIONS = st.lists(
    st.builds(Mutation, st.integers(0, 100), st.sampled_from([0, 1, 5, 200]), st.text("09.-+ #(a\té€", max_size=2)),
    max_size=4,
)


@settings(max_examples=200, deadline=None)
@given(host=st.sampled_from(HOSTS), mutations=MUTATIONS)
def test_mutated_names_have_rules_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, host: Host, mutations: list[Mutation]
) -> None:
    """Never a traceback, and always a line that says whose rules are taken."""
    text = host.uname
    for mutation in mutations:
        text = mutation.of(text)
    folder = tmp_path_factory.mktemp("host")
    refused = None
    try:
        scenario, notes = imported(folder, vm=vm("web", 1), kernel=f"{text}\n")
    except VcpulabError as error:
        refused = str(error)
    if refused is not None:
        assert "kernel.txt" in refused, text
        return
    kernel = kernel_of(read(folder / "kernel.txt").holds)
    if kernel is None:
        assert "no listing says which kernel (`uname -a > kernel.txt` does)" in notes
        return
    assert f"{kernel.scheduler} as in {kernel.generation}" in kernel.explanation
    assert scenario["host"]["generation"] == kernel.generation
    assert kernel.exact or kernel.explanation in notes


def test_a_twin_says_whose_rules_it_has(tmp_path: Path) -> None:
    lines = []
    for number in range(60):
        at = 1 + number * 0.05
        lines += [
            f" CPU 0/KVM-501 [000] d..2. {at:.6f}: sched_switch: prev_comm=CPU 0/KVM prev_pid=501 prev_prio=120 "
            "prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120",
            f" <idle>-0 [000] dN.2. {at + 0.03:.6f}: sched_waking: comm=CPU 0/KVM pid=501 prio=120 target_cpu=000",
            f" <idle>-0 [000] d..2. {at + 0.03:.6f}: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 "
            "prev_state=R ==> next_comm=CPU 0/KVM next_pid=501 next_prio=120",
        ]
    (tmp_path / "trace.txt").write_text("# tracer: nop\n#\n" + "\n".join(lines) + "\n")
    (tmp_path / "threads.txt").write_text("501 web 0\n")
    (tmp_path / "kernel.txt").write_text("6.14.8-2-pve\n/sys/kernel/sched_ext/state:enabled\n")
    twin = Twin(tmp_path)
    host = twin.scenario.to_dict()["host"]
    assert (host["scheduler"], host["generation"]) == (EEVDF, "6.12")
    assert host["base_slice_us"] == 750
    assert any(note.startswith("Linux 6.14.8-2-pve: linux-eevdf as in 6.12 is assumed") for note in twin.notes)
    assert any(note.startswith("sched_ext is enabled") for note in twin.notes)
