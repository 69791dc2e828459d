"""The host and domain settings of a twin, apart from applications: of a Xen host, and of a KVM host."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any

from vcpulab.formats.xl_info import Info
from vcpulab.hosts.kernel import (
    Kernel,
    assumed_params,
    scheduler_warnings,
    supported_params,
    without_missing_params,
)
from vcpulab.hosts.kernel_rules import POLICIES
from vcpulab.hosts.kvm_host import KvmHost, tables_around
from vcpulab.hosts.kvm_threads import SHARE_LEAST, SMALL
from vcpulab.hosts.pcpu_map import PcpuMap
from vcpulab.hosts.xen_host import Pool, XenHost
from vcpulab.hypervisors.command_line import read_options
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.twin.sources import Sources


@dataclass(frozen=True)
class Setting:
    """A recorded host under a scheduler."""

    sources: Sources
    used: str
    """The scheduler."""
    placed: PcpuMap
    """The map of the host's CPUs."""
    notes: list[str]
    """Notes on settings that a scenario cannot express, and on uncertain values."""

    @property
    def kvm(self) -> KvmHost | None:
        """The KVM host; `None`: it is one of Xen's, or is to be."""
        return self.sources.kvm if self.used in POLICIES else None

    @cached_property
    def xen(self) -> XenHost:
        """The host under a scheduler of Xen's; another scheduler than the recorded one has its own defaults."""
        recorded = self.sources.xen or XenHost(Info({}), (Pool(POOL_0, self.used),))
        host = recorded if self.used == self.sources.scheduler else recorded.with_scheduler(self.used)
        return host.with_pools(self.placed, self.notes)

    def host(self) -> tuple[dict[str, Any], list[str]]:
        """The fields of the host, and what is to be known of them."""
        if self.kvm is not None:
            return self._of_kvm(self.kvm)
        pool = self.xen.pools[0]
        rules = self.xen.rules(pool)
        fields: dict[str, Any] = {"scheduler": self.used}
        if rules is not None:
            fields["generation"] = rules.generation
            options = read_options(self.xen.info.settings.get("xen_commandline", ""), self.used, rules.generation)
            gran = self.placed.granularity(options.granularity, self.notes)
            if gran:
                fields["sched_gran"] = gran
            given = options.params if self.used == self.sources.scheduler else {}
            fields |= {name: value for name, (value, _) in given.items()}
            if not rules.exact:
                self.notes.append(rules.explanation)
        if self.sources.of_linux:
            fields["toolstack"] = "libvirt"
        return fields | dict(pool.params), [rules.explanation] if rules is not None and rules.exact else []

    @cached_property
    def _kernel(self) -> Kernel | None:
        """The recorded kernel; `None`: it is not known, or has another scheduler."""
        kernel = None if self.kvm is None else self.kvm.kernel
        return kernel if kernel is not None and kernel.scheduler == self.used else None

    def _of_kvm(self, kvm: KvmHost) -> tuple[dict[str, Any], list[str]]:
        recorded = self._kernel
        fields: dict[str, Any] = {"hypervisor": "kvm", "scheduler": self.used, "toolstack": kvm.toolstack}
        explanations = []
        if recorded is not None:
            fields["generation"] = recorded.generation
            if recorded.exact:
                explanations.append(recorded.explanation)
            else:
                self.notes.append(recorded.explanation)
        self.notes.extend([*scheduler_warnings(kvm.linux, recorded), *kvm.notes])
        fields |= kvm.version_fields(self.notes)
        params = dict(self.sources.host_params)
        for assumed in assumed_params(recorded, params, self.placed.pcpus):
            params[assumed.name] = assumed.value
            self.notes.append(assumed.note)
        fields |= supported_params(params, self.used, fields.get("generation"), self.notes)
        # A thread that polled is recorded as running.
        fields["polls_recorded"] = True
        if self.kvm is not None and (polls := self.kvm.halt_poll_us()) is not None:
            fields["halt_poll_us"] = polls
        if self.kvm is not None:
            fields |= self.kvm.isolation_fields(self.placed, self.notes)
        self.notes.extend(
            f"`{vm.machine.name}` is {vm.name} here: in commands type the host's own name"
            for vm in self.sources.roles.vms.values()
            if vm.name != vm.machine.name
        )
        explanations.append("Nothing polls on top of the recorded times to compute: they contain what the host polled.")
        roles = self.sources.roles
        if roles.left_out:
            share = 100 * roles.left_out_ns / roles.span_ns
            kept = "one domain" if self.small_threads() else "left out"
            explanations.append(
                f"{roles.left_out} threads of the host that hardly ran ({share:.2g} % of a CPU) are {kept}."
            )
        if roles.recorder_ns:
            share = 100 * roles.recorder_ns / roles.span_ns
            explanations.append(f"The threads that recorded (perf, {share:.2g} % of a CPU) are left out.")
        return fields, explanations

    def small_threads(self) -> dict[str, Any]:
        """The domain of the host's threads that ran too little each for one of their own, if together they matter."""
        roles = self.sources.roles
        if self.kvm is None or roles.left_out_ns < SHARE_LEAST * roles.span_ns:
            return {}
        times = max(roles.left_out_executions, 1)
        app = {
            "kind": "periodic",
            "run": f"{max(roles.left_out_ns // times, 1)}ns",
            "period": f"{max(roles.span_ns // times, 1)}ns",
        }
        taken = {*roles.vms, *roles.daemons}
        name = next(name for name in chain([SMALL], (f"{SMALL}-{number}" for number in count(1))) if name not in taken)
        return {name: {"vcpus": 1, "daemon": True, "cgroup": "system.slice", "app": [app]}}

    def around(self) -> dict[str, Any]:
        """The tables around domains: CPU pools of a Xen host, control groups of a KVM host."""
        if self.sources.kvm is None:
            tables = {pool.key: self._pool(pool) for pool in self.xen.pools[1:]}
            return {"pool": tables} if tables else {}
        roles = self.sources.roles
        daemons = [daemon.cgroup for daemon in roles.daemons.values() if daemon.serves is None]
        tables = {} if self.kvm is None else tables_around(roles.vms, daemons, self.kvm, self.placed)
        return {"cgroup": tables} if tables else {}

    def _pool(self, pool: Pool) -> dict[str, Any]:
        rules = self.xen.rules(pool)
        generation = {"generation": rules.generation} if rules is not None else {}
        return {"pcpus": pool.pcpus, "scheduler": pool.scheduler} | generation | dict(pool.params)

    def domain(self, number: int, vcpus: int) -> dict[str, Any]:
        """The fields of a domain with so many vCPUs, but for its applications."""
        if self.sources.kvm is None:
            name = self.sources.name(number)
            return self.xen.fields_of(name, self.xen.domain(number, vcpus), vcpus, self.placed, self.notes)
        if self.kvm is None:
            return {"vcpus": vcpus}
        name = self.sources.names.get(number, "")
        daemon = self.sources.roles.daemons.get(name)
        if daemon is not None:
            return {"vcpus": vcpus, "daemon": True, "cgroup": daemon.cgroup}
        vm = self.sources.roles.vms[name]
        # Some may not have run while it was recorded.
        fields = self.kvm.fields_of(vm, max(vcpus, vm.machine.vcpus or 0), self.placed, self.notes)
        # The recorded work is each vCPU's own: its guest has spread it already.
        fields.pop("threads_per_core", None)
        return without_missing_params(fields, name, self.used, self._kernel, self.notes)
