//! The limits of a scenario, stated once. Each is checked before anything is made whose size
//! depends on the value.

use std::ops::RangeInclusive;

pub use vcpulab_host::mask::PCPUS_MAX;
use vcpulab_host::{Span, Time};

/// Longest name of a scenario, domain or client, characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Most domains.
pub const DOMAINS_MAX: usize = 4096;
/// Most vCPUs of one domain. (Xen's own limit for its largest guests has been 512 for years.)
pub const DOMAIN_VCPUS_MAX: u32 = 512;
/// Numbers of a domain's vCPUs.
pub const VCPU_NUMBERS: RangeInclusive<u32> = 0..=DOMAIN_VCPUS_MAX - 1;
/// Most vCPUs of all domains together.
pub const VCPUS_MAX: u32 = 65_536;
/// Most applications of one domain.
pub const APPS_MAX: usize = 256;
/// Most tasks of all applications together.
pub const TASKS_MAX: usize = 16_384;
/// Most clients.
pub const CLIENTS_MAX: usize = 256;
/// Most timed actions.
pub const ACTIONS_MAX: usize = 65_536;
/// Most replications.
pub const REPLICATIONS_MAX: u32 = 10_000;
/// Most rows of the table `waits`, of all replications.
pub const ROWS_MAX: usize = 4_000_000;
/// Most rows of the other result tables together: domains, vCPUs, pCPUs, applications and clients times replications. A row takes up
/// to 1.7 KB.
pub const RESULT_ROWS_MAX: usize = 1_000_000;
/// Most rows of samples: domains, vCPUs, applications and clients times samples times replications. Where they are many they are in a
/// temporary file; a row that is asked for takes some 130 bytes of memory.
pub const SAMPLE_ROWS_MAX: usize = 4_000_000;
/// Longest time span anywhere in a scenario: one day.
pub const SPAN_MAX: Span = Span::from_secs(24 * 3600);
/// Time spans where none at all is allowed too.
pub const SPANS: RangeInclusive<Span> = Span::ZERO..=SPAN_MAX;
/// Time spans where there must be one.
pub const SPANS_ABOVE_ZERO: RangeInclusive<Span> = Span::from_ns(1)..=SPAN_MAX;
/// Times since the start of the host: in the warm-up, or in the measured time.
pub const TIMES: RangeInclusive<Time> = Time::ZERO..=Time::from_ns(2 * SPAN_MAX.ns());
/// Most connections that one client keeps open.
pub const CONNECTIONS_MAX: u32 = 65_536;
/// Most users of all closed loops together. An open loop has no users: its connections count once they exist.
pub const USERS_MAX: u32 = 262_144;
/// Most streams of all clients together: each may have a window of 64 KB under way.
pub const STREAMS_MAX: u32 = 16_384;
/// Most connections in being at once, those among them that one end has given up: some 400 MB. Reached only during a run.
pub const CONNECTIONS_IN_BEING_MAX: usize = 1 << 20;
/// Highest rate of requests or periods, per second.
pub const RATE_PER_S_MAX: f64 = 10_000_000.0;
/// Rates of requests, per second: at least one a day.
pub const RATES: RangeInclusive<f64> = 1.0 / (SPAN_MAX.ns() / 1_000_000_000) as f64..=RATE_PER_S_MAX;
/// Largest file that is served, bytes.
pub const FILE_SIZE_MAX: u64 = 1 << 30;
/// Most phases of a script.
pub const PHASES_MAX: usize = 4096;
/// Most quantiles of a distribution.
pub const QUANTILES_MAX: usize = 1024;
/// Most events of a phase.
pub const EVENTS_MAX: usize = 1024;
/// Most kinds of requests that one client mixes.
pub const MIX_MAX: usize = 256;
/// Most files that one server answers with.
pub const SERVED_FILES_MAX: usize = 1 << 20;
/// Most NICs, and most disks.
pub const DEVICES_MAX: usize = 64;
/// Rates of a link, bits per second.
pub const LINK_RATES: RangeInclusive<i64> = 1_000..=10_000_000_000_000;
/// Busy cycles between two samples of the profiler.
pub const PROFILER_CYCLES: RangeInclusive<i64> = 10_000..=1_000_000_000_000;
/// Most times that a client tries a request again.
pub const RETRIES_MAX: u32 = 1000;
/// Greatest frequency of a kind of requests in a client's mix, in proportion to the others.
pub const WEIGHT_MAX: u32 = 1_000_000;
/// Longest halt polling, µs.
pub const HALT_POLLS_US: RangeInclusive<i64> = 0..=1_000_000;
/// Most control groups that a scenario names.
pub const CGROUPS_MAX: usize = 4096;
/// Most groups one inside the other, on the path of one that a scenario names.
pub const CGROUP_DEPTH_MAX: usize = 16;
/// Longest path of a control group, characters.
pub const CGROUP_PATH_CHARS_MAX: usize = 512;
/// Weights of control groups of either version, in units of `cpu.weight`.
pub const CGROUP_WEIGHTS: RangeInclusive<i64> = 1..=25_600;
/// Quotas of control groups, µs, where there is one.
pub const CGROUP_QUOTAS_US: RangeInclusive<i64> = 1_000..=10_000_000_000;
/// Periods of control groups' quotas, µs.
pub const CGROUP_PERIODS_US: RangeInclusive<i64> = 1_000..=1_000_000;
/// Priorities of real-time threads of Linux.
pub const PRIORITIES: RangeInclusive<u8> = 1..=99;
/// Nice values of threads of Linux.
pub const NICES: RangeInclusive<i8> = -20..=19;
