//! Linux's fair class: weights, control groups as a tree with a queue for each group and CPU, bandwidth limits. CFS and EEVDF
//! share this code; a [`Flavor`] is what each does differently on one queue.
//!
//! An event (a wake-up, a block, a tick, a refill) changes the queues and may flag a CPU, which asks for a decision;
//! [`Fair::pick_next_task`] takes it. [`Fair`] does not know where the events come from, nor when decisions are due: [`Linux`] drives it
//! as the scheduler of a host. (Linux's documentation: `scheduler/sched-design-CFS`, `scheduler/sched-eevdf`,
//! `scheduler/sched-domains`, `scheduler/sched-bwc`.)
//!
//! Types, fields and functions have the kernel's names where they do what these do.
//! Names that differ:
//!
//! | kernel | here |
//! |---|---|
//! | `sched_entity` | `cfs_rq::Entity`; the fields of EEVDF alone: `eevdf::Request` |
//! | `slice` | EEVDF: `Eevdf::base_slice`; CFS: `Fair::<Cfs>::sched_slice` |
//! | `lag` | `Fair::<Eevdf>::entity_lag`, kept in `vlag`; limit: `lag_limit`; placement by it: `place_entity` |
//! | `RUN_TO_PARITY` | `Flavor::protect_slice` |
//! | `tasks_timeline`, a red-black tree | `CfsRq::timeline`, a sorted list |
//! | `se->my_q`, `cfs_rq->tg` | `Entity::kind`, `CfsRq::group` |
//! | `sched_avg` (PELT) | `pelt::PeltAverage`; loads: `Entity::load_avg`, `CfsRq::load_avg`; utilization: `Linux::util_avg` |
//! | `cpu.weight`, `cpu.max` | `TaskGroup::shares`, `Fair::set_weight`; `CfsBandwidth::max`, `Fair::set_bandwidth` |
//! | `enqueue_task_fair`, `dequeue_entities` | `Fair::enqueue_entities`, `Fair::dequeue_entities` |
//! | `set_next_entity`, `put_prev_entity` of a whole hierarchy | `Fair::put_prev_set_next` |
//! | `throttle_cfs_rq` | `Fair::check_cfs_rq_runtime` |
//! | `sched_cfs_period_timer`, `sched_cfs_slack_timer` | `Fair::period_timer`, `Fair::slack_timer` |
//! | `sched_domain`, `sched_group` | `sched_domains::SchedDomain`, its `groups` |
//! | last-level cache (`sd_llc`) | `SchedDomains::llc` |
//! | `select_task_rq` of a new thread | `Linux::select_task_rq_fork`; of a real-time thread: `Linux::select_task_rq_rt` |
//! | `select_idle_sibling`'s `SIS_UTIL` | `Linux::update_idle_cpu_scan`, `SchedDomains::nr_idle_scan` |
//! | `sched_balance_rq`, `sched_balance_newidle` (6.10) | `Linux::load_balance`, `Linux::newidle_balance` |
//! | `migration_cost` | `params::Common::migration_cost` |
//! | `nohz` idle balance | `Linux::trigger_load_balance` |
//! | `SCHED_FIFO`, `SCHED_RR` | `realtime` |

pub mod cfs;
pub mod eevdf;
pub mod load_weight;

mod bandwidth;
mod cfs_rq;
mod cfs_tasks;
mod cgroups;
mod hierarchy;
mod load_avg;
mod load_balance;
mod params;
mod pelt;
mod policy;
mod realtime;
mod sched_domains;
mod select_cpu;
mod task_group;
mod timers;
mod wakee_flips;

#[cfg(test)]
mod tests;

pub use cfs::Cfs;
pub use cfs_rq::TaskId;
pub use eevdf::Eevdf;
pub use hierarchy::{Fair, Flavor, Settings};
pub use params::limited_part;
pub use policy::Linux;
pub use task_group::Bandwidth;
