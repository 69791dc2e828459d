"""Outputs that people paste and no reader takes, each with the command whose output is read instead."""

import re
from dataclasses import dataclass

_THREADS = "ps -eLo pid,tid,cgroup:512,comm:20,args > ps.txt; grep -rs . /sys/fs/cgroup --include='cpu*' > groups.txt"
_USE = "for n in 1 2; do date +%s.%N; virsh domstats --cpu-total --vcpu; sleep 10; done > use.txt"
_STAT = "for n in 1 2; do date +%s.%N; grep -rs . /sys/fs/cgroup --include=cpu.stat; sleep 10; done > use.txt"
_CPUS = "lscpu -p > lscpu.txt"
_XEN = "xl info -n > info.txt; xl vcpu-list > vcpus.txt; xl cpupool-list -c > pools.txt; xl sched-credit > sched.txt"
_QM = "qm list > list.txt; qm config VMID > VMID.conf"
_GROUPS = "grep -rs . /sys/fs/cgroup --include='cpu*' > groups.txt"
_LIST = "LC_ALL=C virsh list --all > list.txt"
_XML = "virsh dumpxml NAME > NAME.xml"


@dataclass(frozen=True)
class Unread:
    """An output that is not read."""

    title: str
    """The name of the content."""
    command: str
    """The command for a listing with the same facts that can be read."""


_BEGINS = tuple(
    (re.compile(pattern, re.MULTILINE), Unread(title, command))
    for pattern, title, command in (
        (r"^[ \t]{0,80}CPU( {1,80}[A-Z0-9d:iL]{1,80}){0,9} {1,80}CORE\b", "`lscpu -e`", _CPUS),
        (r'^[ \t]{0,80}\{\s{0,80}"lscpu"', "`lscpu -J`", _CPUS),
        (r"^[ \t]{0,80}uuid \( ?RO\) {0,80}: ", "`xe`; in Dom0", _XEN),
        (r"^CPU[ \t]{1,80}core[ \t]{1,80}socket[ \t]{1,80}node$", "`xenpm get-cpu-topology`", "xl info -n > info.txt"),
        (r"^available: \d+ nodes? \(", "`numactl -H`", _CPUS),
        (r"^processor\s*: \d+$", "/proc/cpuinfo", _CPUS),
        (r"^Id: {1,80}\S{1,80}[ \t]{0,80}\r?\nName: {1,80}\S", "`virsh dominfo`", _XML),
        (r"^(maximum|current) +(config|live) +\d", "`virsh vcpucount`", _XML),
        (r"^(usage_usec|user_usec|nr_periods) \d+$", "a `cpu.stat`, without the path of its group", _STAT),
        (r"\A\d+ \d+ \d+\s*\Z", "a /proc/PID/schedstat", _USE),
        (r"^version \d+\ntimestamp \d+$", "/proc/schedstat", _USE),
        (r"^top - \d\d:\d\d:\d\d ", "`top`", _USE),
        (r"^kind: VirtualMachine(Instance)?$", "a KubeVirt manifest; on the node that runs it", _THREADS),
        (
            r"^ {0,80}limits\.cpu[\w.]*: |^type: virtual-machine$",
            "an LXD or Incus configuration; on the host",
            _THREADS,
        ),
        (r"^[ \t]{0,80}(Static|Transient) hostname: ", "`hostnamectl`", "uname -a > kernel.txt"),
        (r"^pve-manager/\d", "`pveversion`", "uname -a > kernel.txt"),
        (r"^#\d\S{0,80} SMP\b", "`uname -v`, without the release", "uname -a > kernel.txt"),
        (r"^(PRETTY_NAME|VERSION_ID)=", "/etc/os-release, without the kernel", "uname -a > kernel.txt"),
        (
            r"\A(Darwin|\w{1,20}BSD|SunOS) ",
            "`uname` of a system that is not Linux",
            "uname -a > kernel.txt",
        ),
        (r"^(rootfs|unprivileged): \S", "`pct config`: a container, which is no VM; of a VM", _QM),
        (
            r"^VMID[ \t]{1,80}Status[ \t]{1,80}Lock[ \t]{1,80}Name",
            "`pct list`: containers, which are no VMs; of VMs",
            "qm list",
        ),
        (r"^ballooninfo:|^qmpstatus: ", "`qm status --verbose`", _QM),
        (r'^[ \t]{0,80}[┌╒]|"vmid" ?: ?"?\d', "`pvesh get`", _QM),
        (r"^Control Group[ \t]{1,80}Tasks[ \t]{1,80}%CPU", "`systemd-cgtop`", _STAT),
        (r"^(CPUWeight|CPUShares|CPUQuotaPerSecUSec)=", "`systemctl show`", _GROUPS),
        (r"^(?=[^\n]{0,400}\bPID\b)[^\n]{0,400}\b(COMMAND|CMD)[ \t]{0,80}$", "`ps` without threads (TID)", _THREADS),
        (r"^\(domain$", "`xl list -l` of old releases", _XEN),
        (r"^[ \t]{0,80}<(vcpu|cputune|vcpupin|emulatorpin|shares|topology)\b", "a part of `virsh dumpxml`", _XML),
        (r"^numa_mode[ \t]{0,80}:", "`virsh numatune`", _XML),
        (r"^CPUs present: ", "`virsh nodecpumap`", _CPUS),
        (r"^Machine \(\d", "`lstopo`", _CPUS),
        (r"^BOOT_IMAGE=", "/proc/cmdline", "grep -H . /proc/cmdline > kernel.txt"),
        (r"^cur [a-z_]{1,40}\d{0,4}: ", "`qm pending`", _QM),
        (
            r"^cpu\.(shares|cfs_quota_us|weight|max):? [\dm-]",
            "`cgget`, or files of a control group without their paths",
            _GROUPS,
        ),
        (
            r"^(Architektur|Architecture[ \u00a0]|Arquitectura|Arquitetura|Architettura|Architectuur|Архитектура"
            r"|アーキテクチャ|架构)[ \t\u00a0]{0,80}[:\uff1a]",
            "`lscpu` in another language than English",
            _CPUS,
        ),
        (
            r"^ {0,80}I[dD] {1,80}(?!Name {1,80}State)\S{1,80} {1,80}\S{1,80}\n *-{20}",
            "`virsh list` in another language than English",
            _LIST,
        ),
        (r"^/usr/bin/(kvm|qemu-system-\S+) -id \d", "`qm showcmd`", "qm config VMID > VMID.conf"),
        (
            r"^[ \t]{0,80}(\*?[A-Z.][0-9. ] {1,3}){1,512}\*? {0,80}\d+\.\d+ secs\b",
            "`perf sched map`",
            "perf script -i perf.data > trace.txt",
        ),
    )
)


def unread(text: str) -> Unread | None:
    r"""The kind of a text that cannot be read, with a better command; `None`: not such a text.

    Examples:
        >>> unread("[root@h ~]# virsh vcpucount web\nmaximum      config         4\n").title
        '`virsh vcpucount`'
        >>> unread("version 3.1")
    """
    return next((output for begins, output in _BEGINS if begins.search(text)), None)
