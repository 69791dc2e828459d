//! Linux's fair class: weights, control groups as a tree with a queue for each group and CPU, bandwidth limits. CFS and
//! EEVDF share this code; a [`Flavor`] is what each does differently on one queue.
//!
//! An event (a wake-up, a block, a tick, a refill) changes the queues and may flag a CPU, which asks for a decision;
//! [`Fair::pick_next_task`] takes it. [`Fair`] does not know where the events come from, nor when decisions are due:
//! [`Linux`] drives it as the scheduler of a host. (Linux's documentation: `scheduler/sched-design-CFS`,
//! `scheduler/sched-eevdf`, `scheduler/sched-domains`, `scheduler/sched-bwc`.)
//!
//! Types, fields and functions have the kernel's names. Where to find them:
//!
//! | file | kernel |
//! |---|---|
//! | `cfs`, `eevdf` | `update_curr`, `enqueue_entity`, `dequeue_entity`, `place_entity`, `entity_tick`, `pick_next_entity`, `reweight_entity`; `min_vruntime` (CFS); `deadline`, `vlag`, `avg_vruntime`, `entity_eligible`, `pick_eevdf` (EEVDF) |
//! | `cfs_rq` | `sched_entity` (`vruntime`, `exec_start`, ..), `cfs_rq` (`h_nr_running`, `curr`, `next`, `runtime_remaining`, ..) |
//! | `hierarchy` | `dequeue_task`, `dequeue_entities`, `cfs_rq_of`, `task_tick`, `yield_task`, `yield_to` |
//! | `pick_next_task` | `pick_next_task`, `put_prev_entity`, `set_next_entity`, `wakeup_preempt`, `need_resched` |
//! | `flat` | one queue for each CPU (7.3): effective weights |
//! | `throttle` | `throttle_cfs_rq`, `unthrottle_cfs_rq`, `tg_throttle_down`, `tg_unthrottle_up`, `throttled_limbo` |
//! | `hrtick` | `hrtick_start_fair`, `hrtick_update`, `hrtick_clear` |
//! | `slices` | `sched_entity.slice`, `set_protect_slice` |
//! | `timeline` | `set_next_buddy`, `clear_buddies`, `account_entity_enqueue` |
//! | `task_group`, `bandwidth` | `task_group`, `MIN_SHARES`, `cfs_bandwidth`; `account_cfs_rq_runtime`, `distribute_cfs_runtime` |
//! | `load_weight` | `load_weight`, `sched_prio_to_weight`, `calc_delta_fair` |
//! | `pelt`, `load_avg` | PELT; `update_load_avg`, `update_tg_load_avg`, `update_cfs_group`, `task_h_load` |
//! | `select_cpu`, `idle_scan`, `wakee_flips` | `select_task_rq`, `wake_affine`, `wake_wide`, `select_idle_sibling`, `select_idle_core`, `select_idle_cpu` |
//! | `load_balance`, `newidle`, `sched_domains`, `cfs_tasks` | `rq->cfs_tasks`; `load_balance`, `newidle_balance`, `find_busiest_group`, `detach_tasks`, `task_hot`, `active_load_balance`; `sched_domain` |
//! | `llc_balancing` | cache-aware balancing (7.2): the preferred cache of a process |
//! | `policy`, `timers`, `realtime` | the scheduler of a host, with its ticks, decisions and refills; `SCHED_FIFO`, `SCHED_RR` |
//! | `rt_bandwidth`, `fair_server` | `rt_rq`, `update_curr_rt`, `do_sched_rt_period_timer`; `rq->fair_server`, `dl_server_update` |
//! | `preempt` | `PREEMPT_NONE`, `PREEMPT_VOLUNTARY`, `PREEMPT_LAZY` |
//! | `releases` | rules by release of the kernel: `cfs::Rules`, `eevdf::Rules` |
//! | `cgroups`, `params` | libvirt's control groups of a domain; tunables, and files and commands that set them |
//!
//! Names that differ:
//!
//! | kernel | here |
//! |---|---|
//! | `slice` | EEVDF: `Fair::<Eevdf>::slice`; CFS: `Fair::<Cfs>::sched_slice` |
//! | `lag` | `Fair::<Eevdf>::entity_lag`, kept in `Request::vlag`; limit: `lag_limit` |
//! | `RUN_TO_PARITY` | `Flavor::protect_slice`, `eevdf::Protection` |
//! | `tasks_timeline`, a red-black tree | `CfsRq::timeline`, a sorted list |
//! | `se->my_q`, `cfs_rq->tg` | `Entity::kind`, `CfsRq::group` |
//! | `sched_avg` | `Entity::load_avg`, `CfsRq::load_avg`; utilization of a CPU: `Linux::util_avg` |
//! | `cpu.weight`, `cpu.max` | `Fair::set_weight`, `Fair::set_bandwidth` |
//! | `enqueue_task_fair` | `Fair::enqueue_entities` |
//! | `throttle_cfs_rq_work` | `Fair::throttle_task` |
//! | `sched_cfs_period_timer`, `sched_cfs_slack_timer` | `Fair::period_timer`, `Fair::slack_timer` |
//! | `sched_group`, `sd_llc` | `SchedDomain::groups`, `SchedDomains::llc` |
//! | `select_task_rq` of a new thread, of a real-time thread | `Linux::select_task_rq_fork`, `Linux::select_task_rq_rt` |
//! | `SIS_UTIL`, `SIS_PROP` | `Linux::update_idle_cpu_scan`, `IdleScans::limit` |
//! | `sched_balance_rq`, `sched_balance_newidle` (6.10) | `Linux::load_balance`, `Linux::newidle_balance` |
//! | `nohz` idle balance | `Linux::trigger_load_balance` |
//! | `max_newidle_lb_cost` | `NewidleStats::believed_cost` |
//! | `newidle_call`, `newidle_success`, `newidle_ratio` | `NewidleStats::calls`, `NewidleStats::successes`, `NewidleStats::ratio` |
//! | `custom_slice`, `cfs_rq_min_slice` | `Fair::set_slice`, `Fair::<Eevdf>::min_slice` |
//! | `update_protect_slice` | `Fair::<Eevdf>::limit_protection` |
//! | `sched_dynamic_mode`, `TIF_NEED_RESCHED_LAZY` | `Preempt`, `Linux::continues_in_kernel` |
//! | `h_nr_queued` (6.14) | `CfsRq::h_nr_running` |
//! | `tg_set_cfs_bandwidth` | `Fair::set_bandwidth` |

pub mod cfs;
pub mod eevdf;
pub mod load_weight;

mod bandwidth;
mod cfs_rq;
mod cfs_tasks;
mod cgroups;
mod fair_server;
mod flat;
mod hierarchy;
mod hrtick;
mod idle_scan;
mod llc_balancing;
mod load_avg;
mod load_balance;
mod newidle;
mod params;
mod pelt;
mod pick_next_task;
mod policy;
mod preempt;
mod rank;
mod realtime;
mod releases;
mod rt_bandwidth;
mod sched_domains;
mod select_cpu;
mod slices;
mod task_group;
mod throttle;
mod timeline;
mod timers;
mod wakee_flips;

#[cfg(test)]
mod tests;

pub use cfs::Cfs;
pub use cfs_rq::TaskId;
pub use eevdf::Eevdf;
pub use hierarchy::{Fair, Flavor, Settings};
pub use params::{GroupFiles, Tuned, limited_part};
pub use policy::Linux;
pub use preempt::Preempt;
pub use releases::{Evidence, KernelFacts, KernelRelease, KernelRules};
pub use task_group::Bandwidth;
