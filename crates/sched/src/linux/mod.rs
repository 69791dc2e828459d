//! Linux's fair class: weights, control groups as a tree with a queue for each group and CPU, bandwidth limits. CFS and EEVDF
//! share this code; a [`Flavor`] is what each does differently on one queue.
//!
//! An event (a wake-up, a block, a tick, a refill) changes the queues and may flag a CPU, which asks for a decision;
//! [`Fair::choose`] takes it. [`Fair`] does not know where the events come from, nor when decisions are due: [`Linux`] drives it
//! as the scheduler of a host. (Linux's documentation: `scheduler/sched-design-CFS`, `scheduler/sched-eevdf`,
//! `scheduler/sched-domains`, `scheduler/sched-bwc`.)
//!
//! The kernel's names, and the names of the same things in this module:
//!
//! | kernel | here |
//! |---|---|
//! | `sched_entity` | `cfs_rq::Entity` |
//! | `vruntime` | `cfs_rq::Entity::v` |
//! | `deadline` | `eevdf::Request::deadline` |
//! | `slice` | EEVDF: `Eevdf::base_slice`; CFS: `Fair::<Cfs>::slice` |
//! | `lag`, `vlag` | `eevdf::Request::lag`; limit: `Fair::<Eevdf>::most_lag`; placement by it: `Fair::<Eevdf>::place` |
//! | `avg_vruntime`, `entity_eligible` | `Fair::<Eevdf>::virtual_average`, `eligible` |
//! | `pick_eevdf` | `Fair::<Eevdf>::best` |
//! | delayed dequeue (`sched_delayed`) | `eevdf::Request::delayed` |
//! | `min_vruntime` | `cfs::Own::min_v` |
//! | `wakeup_granularity` | `Cfs::wakeup_granularity`, tested in `Fair::<Cfs>::late` |
//! | `cfs_rq` | `cfs_rq::Queue`; `h_nr_running`: its `tasks`; `nr_running`: its `nr` |
//! | buddies (`next`, `last`, `skip`) | the fields of `cfs_rq::Queue` with these names, set in `Fair::prefer` and `Fair::name` |
//! | `task_group`, `cpu.weight` | `limit::Group`; weight of a group on a CPU: `Fair::refresh_weight`, `part_of_shares` in `load_avg` |
//! | PELT (`load_avg`, `util_avg`) | `pelt::Average`; loads: `Entity::average`, `Queue::average`; utilization: `Linux::busy` |
//! | `update_curr` | `Flavor::update`, `Fair::charge_current` |
//! | `enqueue_task`, `dequeue_task` | `Fair::enqueue_upwards`, `Fair::dequeue_upwards`, with `Flavor::enqueue` and `dequeue` |
//! | `pick_next_task` | `Fair::choose`, `Fair::pick` |
//! | wakeup preemption | `Fair::test_preemption`, `Flavor::preempts` |
//! | `need_resched` | the flags of `Fair`: `Fair::flag`, `Fair::flagged` |
//! | `yield_to` | `Fair::yield_to` |
//! | CFS bandwidth (`cpu.max`) | `limit::Bandwidth`, `limit::Limit`; throttling, refill, slack timer: `bandwidth` |
//! | `sched_domain`, `sched_group` | `sched_domains::Level`, its `groups`; `imbalance_pct`: `Level::imbalance_percent` |
//! | last-level cache (`sd_llc`) | `sched_domains::Levels::cache` |
//! | `select_task_rq` | of a waking thread: `Linux::choose_cpu`; of a new one: `Linux::place` (both in `select_cpu`) |
//! | `wake_affine` | `Linux::this_or_before` |
//! | `wake_wide`, `wakee_flips` | `Linux::note_waking`, `wakee_flips::Partners` |
//! | `select_idle_core`, `select_idle_cpu` | `Linux::idle_core`, `Linux::next_idle`; `SIS_UTIL`: `Linux::set_scan` |
//! | `load_balance` (6.10: `sched_balance_rq`) | `Linux::balance_level`: `imbalance`, `busiest_of`, `relieve` (all in `load_balance`) |
//! | `task_hot`, `migration_cost` | `Linux::is_hot`, `params::Common::migration_cost` |
//! | active balance | `Linux::push_running` |
//! | `newidle_balance` (6.10: `sched_balance_newidle`) | `Linux::pull` |
//! | periodic balance, also for idle CPUs (`nohz`) | `Linux::balance` |
//! | `SCHED_FIFO`, `SCHED_RR` | `realtime` |

pub mod cfs;
pub mod eevdf;
pub mod load_weight;

mod bandwidth;
mod cfs_rq;
mod cfs_tasks;
mod cgroups;
mod hierarchy;
mod limit;
mod load_avg;
mod load_balance;
mod params;
mod pelt;
mod policy;
mod realtime;
mod sched_domains;
mod select_cpu;
mod timers;
mod wakee_flips;

#[cfg(test)]
mod tests;

pub use cfs::Cfs;
pub use cfs_rq::TaskId;
pub use eevdf::Eevdf;
pub use hierarchy::{Fair, Flavor, Settings};
pub use limit::Bandwidth;
pub use params::limited_part;
pub use policy::Linux;
