//! The rows of the result tables: one for each replication and thing; times in nanoseconds of simulated time.

use crate::tables::columns::columns;

columns! {
    /// CPU time, waits and switches of each domain, for each replication.
    pub struct DomainRow in "domains" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// The domain's number (0: Dom0).
        pub number: i64,
        /// The CPU pool it is in at the end, or was in last.
        pub pool: String,
        /// State at the end, in the letters of `xl list`: `r` running, `b` blocked, `p` paused, none of them: waiting
        /// for a pCPU; null: not on the host.
        pub state: Option<String>,
        /// Number of its vCPUs.
        pub vcpus: u32,
        /// Time measured, ns; the four runstates sum to it times the number of vCPUs.
        pub elapsed_ns: i64,
        /// Time its vCPUs were running, ns: XenMon's *gotten*.
        pub running_ns: i64,
        /// Work done in that time, in the ns that it takes alone on a core, at the profile's clock rate, with memory of
        /// the own node: time running less time lost.
        pub work_ns: i64,
        /// Time lost to busy threads of the same core, ns.
        pub slowed_threads_ns: i64,
        /// Time lost to memory that was on another node, or crowded, ns.
        pub slowed_memory_ns: i64,
        /// Time lost to clock rates below the profile's, ns; below 0: won by rates above it.
        pub slowed_frequency_ns: i64,
        /// Time its vCPUs were runnable but waited for a pCPU, ns: XenMon's *waited*; a guest's steal; CPU ready.
        pub runnable_ns: i64,
        /// Time its vCPUs were blocked, ns: XenMon's *blocked*.
        pub blocked_ns: i64,
        /// Time its vCPUs were paused, offline or not on the host, ns.
        pub offline_ns: i64,
        /// Times a vCPU of it was switched in: XenMon's executions.
        pub executions: u64,
        /// Times a vCPU of it became runnable after a block.
        pub wakeups: u64,
        /// Times a vCPU of it was switched out.
        pub context_switches: u64,
        /// Times a vCPU of it was switched out although it could have continued.
        pub preemptions: u64,
        /// Times a vCPU of it was assigned to another pCPU.
        pub migrations: u64,
        /// XenMon's I/O count: packets and requests it moved, once for each side of a ring.
        pub io_count: u64,
        /// CPU time that the scheduler's weights, reservations or timetable promise it when everybody wants all they can get, in pCPUs; null
        /// where these do not decide.
        pub entitlement: Option<f64>,
        /// Median wait for a pCPU, ns, one wait for each execution.
        pub wait_p50_ns: u64,
        /// 95th percentile of the wait, ns.
        pub wait_p95_ns: u64,
        /// 99th percentile of the wait, ns.
        pub wait_p99_ns: u64,
        /// Longest wait, ns.
        pub wait_max_ns: u64,
        /// Median wait after waking up, whatever the cause, ns; null: waits are not counted by origin.
        pub wake_p50_ns: Option<u64>,
        /// 90th percentile of the wait after waking up, ns; null: waits are not counted by origin.
        pub wake_p90_ns: Option<u64>,
        /// Lines brought into an L2 cache again because others had run in between.
        pub l2_misses: u64,
        /// Lines brought in again from memory because others had run in between; without an L3 cache all of the L2's.
        pub l3_misses: u64,
        /// Time taken by lines brought in again, ns: overhead of the pCPUs.
        pub refill_ns: i64,
    }
}

columns! {
    /// CPU time, waits and switches of each vCPU, for each replication.
    pub struct VcpuRow in "vcpus" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// The domain's number (0: Dom0).
        pub number: i64,
        /// The vCPU's number in its domain.
        pub vcpu: u32,
        /// Time measured, ns; the four runstates sum to it.
        pub elapsed_ns: i64,
        /// Time running, ns.
        pub running_ns: i64,
        /// Work done in that time, in the ns that it takes alone on a core, at the profile's clock rate, with memory of
        /// the own node: time running less time lost.
        pub work_ns: i64,
        /// Time lost to busy threads of the same core, ns.
        pub slowed_threads_ns: i64,
        /// Time lost to memory that was on another node, or crowded, ns.
        pub slowed_memory_ns: i64,
        /// Time lost to clock rates below the profile's, ns; below 0: won by rates above it.
        pub slowed_frequency_ns: i64,
        /// Time runnable but waiting for a pCPU, ns (steal, CPU ready).
        pub runnable_ns: i64,
        /// Time blocked, ns.
        pub blocked_ns: i64,
        /// Time paused, offline or not on the host, ns.
        pub offline_ns: i64,
        /// Times it was switched in.
        pub executions: u64,
        /// Times it became runnable after a block.
        pub wakeups: u64,
        /// Times it was switched out.
        pub context_switches: u64,
        /// Times it was switched out although it could have continued.
        pub preemptions: u64,
        /// Times it was assigned to another pCPU.
        pub migrations: u64,
        /// Longest wait for a pCPU, ns.
        pub wait_max_ns: u64,
        /// Lines brought into an L2 cache again because others had run in between.
        pub l2_misses: u64,
        /// Lines brought in again from memory because others had run in between; without an L3 cache all of the L2's.
        pub l3_misses: u64,
        /// Time taken by lines brought in again, ns: overhead of the pCPUs.
        pub refill_ns: i64,
    }
}

columns! {
    /// The time of each pCPU, for each replication.
    pub struct PcpuRow in "pcpus" {
        /// Replication, from 0.
        pub replication: u32,
        /// The pCPU's number.
        pub pcpu: u32,
        /// The CPU pool it is in.
        pub pool: String,
        /// Time measured, ns; run, idle and overhead sum to it.
        pub elapsed_ns: i64,
        /// Time in which vCPUs made progress, ns.
        pub run_ns: i64,
        /// Time idle, ns.
        pub idle_ns: i64,
        /// Time taken by decisions, context switches, interrupts and cold caches, ns.
        pub overhead_ns: i64,
        /// Decisions taken.
        pub decisions: u64,
        /// Decisions that changed what it runs.
        pub switches: u64,
    }
}

columns! {
    /// The threads of a KVM host that serve its VMs, each with its VM: the vCPUs of the domain `host`. No rows where the
    /// hypervisor is Xen. A VM's emulator has no thread here if it has nothing to do: no disk and no emulated device.
    pub struct ThreadRow in "threads" {
        /// Replication, from 0.
        pub replication: u32,
        /// The thread's name: its kind and the VM's name.
        pub thread: String,
        /// The name of the VM that it serves.
        pub domain: String,
        /// Kind of the thread: `vhost` (packets), `emulator` (emulated devices, and disks without an I/O thread),
        /// `iothread` (the disk).
        pub kind: &'static str,
        /// Number of the thread among the vCPUs of the domain `host`.
        pub vcpu: u32,
        /// Time measured, ns.
        pub elapsed_ns: i64,
        /// Time it was running, ns: CPU time that the VM costs besides that of its vCPUs.
        pub running_ns: i64,
        /// Time it was runnable but waited for a pCPU, ns.
        pub runnable_ns: i64,
        /// Times it was switched in.
        pub executions: u64,
        /// Times it became runnable after a block.
        pub wakeups: u64,
        /// Times it was assigned to another pCPU.
        pub migrations: u64,
    }
}

columns! {
    /// Costs of the VMs and daemons of a KVM host, and CPU time that they did not get. No rows where the hypervisor is Xen.
    pub struct VmRow in "vms" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// Time measured, ns.
        pub elapsed_ns: i64,
        /// Time its vCPUs were running, ns, halt polling included; of a daemon, its threads.
        pub vcpus_ns: i64,
        /// Time the threads that serve it were running, ns: see `threads`.
        pub threads_ns: i64,
        /// Time its vCPUs were runnable but not running, ns: what its guest sees as steal; limits that are exhausted count in.
        pub steal_ns: i64,
        /// Periods of its limits that have ended in which it ran (`nr_periods` of its groups together); 0 under schedulers without limits.
        pub periods: i64,
        /// Number of `periods` at whose end a limit was exhausted (`nr_throttled`).
        pub throttled_periods: i64,
        /// Time for which its limits were exhausted, summed up over pCPUs, ns (`throttled_usec`).
        pub throttled_ns: i64,
    }
}

columns! {
    /// Waits for a pCPU: the time that vCPUs of a domain were runnable, by the domain that had the pCPUs they could have run on.
    pub struct WaitRow in "waits" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain that waited.
        pub domain: String,
        /// The cause of the wait: a domain whose vCPU made progress meanwhile; `idle`: the pCPU idled; `hypervisor`: the hypervisor's own work, and cold caches.
        pub by: String,
        /// Whether `by` is a domain.
        pub by_domain: bool,
        /// Time waited, ns; over all rows of a domain it sums to its time runnable. Rows of 0 are left out.
        pub wait_ns: i64,
    }
}

columns! {
    /// Waits of each domain's vCPUs for a pCPU after waking up, by the cause of the wake-up.
    pub struct WakeUpRow in "wakeups" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// The cause: `start`, `timer`, `interrupt`, `event` (from outside the domains, or on a host with more than 64), `event from NAME`, `unpause`.
        pub cause: String,
        /// Wake-ups that led to an execution.
        pub count: u64,
        /// Mean time from the wake-up until it was switched in, ns.
        pub mean_ns: f64,
        /// Median, ns.
        pub p50_ns: u64,
        /// 90th percentile, ns.
        pub p90_ns: u64,
        /// 95th percentile, ns.
        pub p95_ns: u64,
        /// 99th percentile, ns.
        pub p99_ns: u64,
        /// Longest, ns.
        pub max_ns: u64,
    }
}

columns! {
    /// Histograms of the waits in `wakeups`, in steps of a quarter of an octave.
    pub struct WakeUpBucketRow in "wakeup_buckets" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// The cause, as in `wakeups`.
        pub cause: String,
        /// Shortest wait of this bucket, ns.
        pub from_ns: u64,
        /// Upper bound of the bucket, ns: all its waits are shorter.
        pub below_ns: u64,
        /// Number of waits.
        pub count: u64,
    }
}

columns! {
    /// Counters of each domain from one sample to the next, as XenMon and xentop read them. The first sample begins after the warm-up.
    pub struct SampleRow in "samples" {
        /// Replication, from 0.
        pub replication: u32,
        /// Time of the sample, ns since the host started.
        pub time_ns: i64,
        /// The domain's name.
        pub domain: String,
        /// The domain's number (0: Dom0).
        pub number: i64,
        /// State at that time, in the letters of `xl list`; null: not on the host.
        pub state: Option<String>,
        /// Number of its vCPUs.
        pub vcpus: u32,
        /// Time since the sample before, ns; the four runstates sum to it times the number of vCPUs.
        pub elapsed_ns: i64,
        /// Time its vCPUs were running, ns: XenMon's *gotten*.
        pub running_ns: i64,
        /// Work done in that time, in the ns that it takes alone on a core, at the profile's clock rate, with memory of
        /// the own node.
        pub work_ns: i64,
        /// Time its vCPUs were runnable but waited for a pCPU, ns: XenMon's *waited*.
        pub runnable_ns: i64,
        /// Time its vCPUs were blocked, ns: XenMon's *blocked*.
        pub blocked_ns: i64,
        /// Time its vCPUs were paused, offline or not on the host, ns.
        pub offline_ns: i64,
        /// CPU time of the slices with which its vCPUs were switched in, ns: XenMon's *allocated*. Slices without an
        /// end do not count.
        pub allocated_ns: i64,
        /// Times a vCPU of it was switched in: XenMon's executions.
        pub executions: u64,
        /// Times a vCPU of it became runnable after a block.
        pub wakeups: u64,
        /// Times a vCPU of it was switched out.
        pub context_switches: u64,
        /// Times a vCPU of it was switched out although it could have continued.
        pub preemptions: u64,
        /// Times a vCPU of it was assigned to another pCPU.
        pub migrations: u64,
        /// Lines brought into an L2 cache again because others had run in between.
        pub l2_misses: u64,
        /// Lines brought in again from memory because others had run in between; without an L3 cache all of the L2's.
        pub l3_misses: u64,
        /// Time taken by lines brought in again, ns: overhead of the pCPUs.
        pub refill_ns: i64,
        /// XenMon's I/O count: packets and requests it moved, once for each side of a ring.
        pub io_count: u64,
        /// Packets it received through its netfront; null: it has none.
        pub packets_received: Option<u64>,
        /// Packets it sent.
        pub packets_sent: Option<u64>,
        /// Packets for it that found its ring full.
        pub packets_dropped: Option<u64>,
        /// Bytes it received, as on the link.
        pub bytes_received: Option<u64>,
        /// Bytes it sent, as on the link.
        pub bytes_sent: Option<u64>,
        /// Pages that changed owner: one for each packet delivered to it.
        pub page_exchanges: Option<u64>,
        /// Events sent to its netfront.
        pub events: Option<u64>,
        /// Reads of its virtual disk; null: it has none.
        pub disk_reads: Option<u64>,
        /// Writes to its virtual disk.
        pub disk_writes: Option<u64>,
        /// Bytes it read.
        pub disk_read_bytes: Option<u64>,
        /// Bytes it wrote.
        pub disk_written_bytes: Option<u64>,
    }
}

columns! {
    /// CPU time of each vCPU from one sample to the next.
    pub struct VcpuSampleRow in "vcpu_samples" {
        /// Replication, from 0.
        pub replication: u32,
        /// Time of the sample, ns since the host started.
        pub time_ns: i64,
        /// The domain's name.
        pub domain: String,
        /// The vCPU's number in its domain.
        pub vcpu: u32,
        /// Time it was running since the sample before, ns.
        pub running_ns: i64,
    }
}

columns! {
    /// Work completed by each application and client from one sample to the next.
    pub struct AppSampleRow in "app_samples" {
        /// Replication, from 0.
        pub replication: u32,
        /// Time of the sample, ns since the host started.
        pub time_ns: i64,
        /// The domain's name.
        pub domain: String,
        /// The application's position in its domain, from 0.
        pub app: u32,
        /// Kind of the application, as in the scenario.
        pub kind: String,
        /// Time since the sample before, ns.
        pub elapsed_ns: i64,
        /// Units of work completed.
        pub completed: u64,
        /// Units of work refused, dropped or late past their deadline.
        pub failed: u64,
        /// Sum of the response times of those completed, ns; null: none was completed, or they have no response time.
        pub response_sum_ns: Option<i64>,
    }
}

columns! {
    /// Counters of each domain on each pCPU that it ran on, from one sample to the next: the rows of XenMon. A vCPU that does not
    /// run counts where it is assigned.
    pub struct PcpuSampleRow in "pcpu_samples" {
        /// Replication, from 0.
        pub replication: u32,
        /// Time of the sample, ns since the host started.
        pub time_ns: i64,
        /// The domain's name.
        pub domain: String,
        /// The domain's number (0: Dom0).
        pub number: i64,
        /// The pCPU.
        pub pcpu: u32,
        /// Time its vCPUs ran there, ns; more than 0.
        pub running_ns: i64,
        /// Time its vCPUs waited to run there, ns.
        pub runnable_ns: i64,
        /// Time its vCPUs assigned to it were blocked, ns.
        pub blocked_ns: i64,
        /// CPU time of the slices with which its vCPUs were switched in there, ns. Slices without an end do not count.
        pub allocated_ns: i64,
        /// Times a vCPU of it was switched in there.
        pub executions: u64,
    }
}

columns! {
    /// Busy time by layers, as Xenoprof sees it: exactly, and as estimated from the profiler's samples.
    pub struct ProfileRow in "profile" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name; null: the hypervisor's own time.
        pub domain: Option<String>,
        /// In a domain: `application`; `kernel`; `hypervisor`, on behalf of the domain: upcalls, exchanges and grants of pages.
        /// The hypervisor's own: `overhead`: decisions, switches, interrupts; `refill`: cold caches filled again;
        /// `profiler`: the samples themselves.
        pub layer: &'static str,
        /// Samples that found it at work; null: there was no profiler, or it does not see this.
        pub samples: Option<u64>,
        /// Busy time estimated from the samples, ns: samples times period.
        pub estimated_ns: Option<i64>,
        /// Busy time in truth, ns.
        pub exact_ns: i64,
    }
}

columns! {
    /// Work completed by each application and client, for each replication.
    pub struct AppRow in "apps" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// The application's position in its domain, from 0.
        pub app: u32,
        /// Kind of the application, as in the scenario.
        pub kind: String,
        /// Units of work completed: requests, jobs, loops; for a CPU hog the milliseconds of CPU time.
        pub completed: u64,
        /// Units of work refused, dropped or late past their deadline.
        pub failed: u64,
        /// Units of work completed per second.
        pub throughput_per_s: f64,
        /// Time at which the last unit was completed, ns since the host started; null: none was. For a program that ends, the
        /// time of its end.
        pub last_completed_ns: Option<i64>,
        /// Median response time, ns; null: it has none.
        pub response_p50_ns: Option<u64>,
        /// 95th percentile of the response time, ns.
        pub response_p95_ns: Option<u64>,
        /// 99th percentile of the response time, ns.
        pub response_p99_ns: Option<u64>,
        /// Longest response time, ns.
        pub response_max_ns: Option<u64>,
        /// Mean response time, ns.
        pub response_mean_ns: Option<f64>,
        /// Standard deviation of the response times, ns.
        pub response_sd_ns: Option<f64>,
    }
}

columns! {
    /// Traffic of each domain's devices, for each replication; null where a domain does not have the device.
    pub struct IoRow in "io" {
        /// Replication, from 0.
        pub replication: u32,
        /// The domain's name.
        pub domain: String,
        /// Time measured, ns.
        pub elapsed_ns: i64,
        /// Packets that it took from its netfront.
        pub packets_received: Option<u64>,
        /// Packets that it sent through its netfront.
        pub packets_sent: Option<u64>,
        /// Bytes it received, as on the link.
        pub bytes_received: Option<u64>,
        /// Bytes it sent, as on the link.
        pub bytes_sent: Option<u64>,
        /// Pages that changed owner: one for each packet delivered to it.
        pub page_exchanges: Option<u64>,
        /// Pages that it granted to its driver domain with packets sent.
        pub page_grants: Option<u64>,
        /// Events sent to its netfront.
        pub events: Option<u64>,
        /// Packets for it that found its ring full and were lost.
        pub ring_drops: Option<u64>,
        /// Packets to it or from it that were lost and sent again.
        pub retransmissions: Option<u64>,
        /// Packets that it took from the NICs that it owns.
        pub nic_received: Option<u64>,
        /// Packets that it put on the links of its NICs.
        pub nic_sent: Option<u64>,
        /// Interrupts that its NICs raised.
        pub nic_interrupts: Option<u64>,
        /// Packets that found a NIC's queue full and were lost.
        pub nic_drops: Option<u64>,
        /// Requests that it made to its virtual disk.
        pub disk_requests: Option<u64>,
        /// Bytes it read.
        pub disk_read_bytes: Option<u64>,
        /// Bytes it wrote.
        pub disk_written_bytes: Option<u64>,
        /// Pages that it granted to blkback.
        pub disk_grants: Option<u64>,
        /// Events sent to its virtual disk.
        pub disk_events: Option<u64>,
        /// Requests to the disks that it owns.
        pub device_requests: Option<u64>,
        /// Requests to the disks that it owns that joined a waiting request.
        pub device_merges: Option<u64>,
        /// Movements of the heads of its disks.
        pub device_seeks: Option<u64>,
        /// Interrupts that its disks raised.
        pub device_interrupts: Option<u64>,
        /// Time in which its disks had requests to serve, ns, together.
        pub device_busy_ns: Option<i64>,
    }
}

columns! {
    /// Every decision that changed what a pCPU runs.
    pub struct TraceRow in "trace" {
        /// Replication, from 0.
        pub replication: u32,
        /// Time of the decision, ns since the host started.
        pub time_ns: i64,
        /// The pCPU's number.
        pub pcpu: u32,
        /// The domain that ran until now (−1: idle).
        pub from_domain: i64,
        /// The vCPU of that domain that ran (for idle: the pCPU's number).
        pub from_vcpu: i64,
        /// The domain that runs from now on (−1: idle).
        pub to_domain: i64,
        /// The vCPU of that domain that runs (for idle: the pCPU's number).
        pub to_vcpu: i64,
        /// Time that the incoming vCPU had waited for a pCPU, ns.
        pub waited_ns: i64,
    }
}

columns! {
    /// Every event, in order of time, as `--trace` writes it: one file for each replication. Columns that a kind of event does not have are null.
    pub struct EventRow in "events" {
        /// Time of the event, ns since the host started.
        pub time_ns: i64,
        /// The kind of event: `decision`, `switch`, `runstate`, `wake`, `migration`, `timer` (the scheduler's), `io`, `state` (the scheduler's), `lost` (records of that pCPU are missing until now), `end`.
        pub kind: &'static str,
        /// The pCPU; for a migration, the new one.
        pub pcpu: Option<u32>,
        /// The domain's number (−1: idle). For a switch, the domain that runs from now on.
        pub domain: Option<i64>,
        /// The vCPU's number in its domain (for idle: the pCPU's number).
        pub vcpu: Option<i64>,
        /// The domain that woke it; for a switch, the one that ran until now.
        pub by_domain: Option<i64>,
        /// The vCPU of that domain.
        pub by_vcpu: Option<i64>,
        /// The runstate, the cause of the wake-up, the step of I/O, or the key of the scheduler's state.
        pub what: Option<&'static str>,
        /// For a switch, the time that the incoming vCPU had waited, ns; for a migration, the pCPU before; the timer's token; the value of the state; the count of a step of I/O.
        pub value: Option<i64>,
        /// The packet, request or event of a step of I/O.
        pub id: Option<u64>,
    }
}

columns! {
    /// The paths of single requests, in order of time: the legs of each, one after the other without a gap, from the begin of
    /// the request to its answer. `vcpulab explain` follows them; `Explained.paths` has them in Python. Columns that a leg does
    /// not have are null.
    pub struct PathRow in "paths" {
        /// Replication, from 0.
        pub replication: u32,
        /// The quantile of the response times that the request is at: 0.99 is the 99th percentile.
        pub quantile: f64,
        /// Begin of the leg, ns since the host started.
        pub begin_ns: i64,
        /// End of the leg, ns since the host started.
        pub end_ns: i64,
        /// The place: `client` (the client or its machine), `failed-try`, `link-in` and `link-out` (to the host and from it), `nic` (in its queue), `netback` (a driver domain works at the packet), `thread` (in the queue of another of its netback threads), `ring-in` (on its way to a guest), `poll` (the same, until netback ends its poll and notifies the guest), `receive` (netfront and network stack), `backlog`, `service` (no task is free), `ready` (the task waits for its turn in the guest), `task` (it computes), `spin`, `lock`, `sleep`, `event`, `call` (of another service), `disk`, `send-queue`, `send`, `ring-out` (on its way to a driver domain), `loopback`, `lost` (until it is sent again), `delayed-ack`.
        pub place: &'static str,
        /// The NIC.
        pub nic: Option<String>,
        /// The domain that has to do something there.
        pub domain: Option<String>,
        /// The number of the vCPU of that domain that has to.
        pub vcpu: Option<u32>,
        /// The runstate of that vCPU: `running`, `runnable` (it waits for a pCPU), `blocked`, `offline`.
        pub state: Option<&'static str>,
        /// Of a wait for a pCPU: the pCPU that it got at last.
        pub pcpu: Option<u32>,
        /// The domain that had that pCPU meanwhile; null: it idled.
        pub by_domain: Option<String>,
        /// The vCPU of that domain.
        pub by_vcpu: Option<u32>,
    }
}
