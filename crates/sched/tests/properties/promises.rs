//! What each policy's papers and pages promise, on random loads of CPU hogs.

use proptest::prelude::*;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    DomainConfig, Host, HostConfig, HostState, Observer, ParamValue, Params, Pools, Span, Switch, Time,
    TimetableEntry, VcpuConfig, VcpuId,
};

use crate::alone;

/// In ns, as all times here.
const MS: i64 = 1_000_000;

/// Runs one hog for each domain on one pCPU, and returns when each ran: intervals by domain.
struct Hogs<'a> {
    params: &'a [Params],
    end: i64,
}

type Intervals = Vec<Vec<(i64, i64)>>;

#[derive(Default)]
struct Record {
    intervals: Intervals,
    since: i64,
}

impl Observer for Record {
    fn switched(&mut self, host: &HostState, switch: Switch) {
        if !host.is_idle(switch.from) {
            self.intervals[host.dom(switch.from).index()].push((self.since, switch.time.ns()));
        }
        self.since = switch.time.ns();
    }
}

impl Hogs<'_> {
    fn run(self, scheduler: Pools) -> Intervals {
        let mut programs = Programs::default();
        let domains = self.params.iter().enumerate().map(|(i, params)| {
            programs.set(VcpuId(1 + i as u32), Program { steps: vec![Step::Hog], repeat: false });
            DomainConfig {
                number: 1 + i as i64,
                params: params.clone(),
                vcpus: vec![VcpuConfig { start: Some(Span::ZERO), affinity: None, ..VcpuConfig::default() }],
                ..DomainConfig::default()
            }
        });
        let config = HostConfig { pcpus: 1, domains: domains.collect(), ..HostConfig::default() };
        let record = Record { intervals: vec![Vec::new(); self.params.len()], since: 0 };
        let mut host = Host::new(&config, scheduler, programs, record).unwrap();
        host.run_until(Time::from_ns(self.end)).unwrap();
        let (context, _, _, mut record) = host.into_parts();
        let current = context.executes(vcpulab_host::PcpuId(0));
        if !context.is_idle(current) {
            record.intervals[context.dom(current).index()].push((record.since, self.end));
        }
        record.intervals
    }
}

fn hogs(policy: &str, generation: &str, global: &Params, params: &[Params], end: i64) -> Intervals {
    Hogs { params, end }.run(alone(policy, generation, global, 1))
}

/// CPU time within a window, ns.
fn gotten(intervals: &[(i64, i64)], from: i64, to: i64) -> i64 {
    intervals.iter().map(|&(start, end)| (end.min(to) - start.max(from)).max(0)).sum()
}

/// Reservations that fit on one pCPU: periods in ms, and slices in tenths of a ms.
fn reservations(utilisation: i64) -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((5..60i64, 1..100i64), 1..5).prop_map(move |drawn| {
        let weights: i64 = drawn.iter().map(|&(_, weight)| weight).sum();
        let fit = |&(period, weight): &(i64, i64)| {
            let slice = (period * 10 * utilisation * weight / (100 * weights)).max(1);
            (period * MS, slice * MS / 10)
        };
        drawn.iter().map(fit).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// BVT with equal weights: nobody is ahead of its share by more than the context switch allowance and one minimum
    /// charging unit.
    #[test]
    fn bvt_bounds_the_allocation_error(count in 2..6usize, allowance_ms in 1..20i64) {
        let global = Params::new().with("ctx_allow", allowance_ms * MS);
        let of_xen = allowance_ms * MS + MS / 10;
        for (generation, bound) in [("xen2.0", of_xen), ("xen3.0", of_xen), ("acrn3", 6 * MS)] {
            let intervals = hogs("bvt", generation, &global, &vec![Params::new(); count], 2_000 * MS);
            for until in (1..=200).map(|k| k * 10 * MS) {
                let share = until / count as i64;
                for domain in &intervals {
                    let error = gotten(domain, 0, until) - share;
                    prop_assert!(error <= bound, "{generation}: ahead by {error} ns at {until} ns");
                }
            }
        }
    }

    /// ACRN's BVT: shares by weight, whatever the weights, within the allowance and one minimum charging unit for each of those
    /// that share the pCPU.
    #[test]
    fn acrn_bvt_divides_a_pcpu_by_weight(weights in prop::collection::vec(1..=128i64, 2..6)) {
        let params: Vec<Params> = weights.iter().map(|&weight| Params::new().with("weight", weight)).collect();
        let (total, end) = (weights.iter().sum::<i64>(), 20_000 * MS);
        let intervals = hogs("bvt", "acrn3", &Params::new(), &params, end);
        for (&weight, domain) in weights.iter().zip(&intervals) {
            let error = gotten(domain, 0, end) - end / total * weight;
            let bound = 6 * MS * weights.len() as i64;
            prop_assert!(error.abs() <= bound, "weight {weight} of {weights:?}: {error} ns off");
        }
    }

    /// ACRN's BVT: in any unwarp period after it a vCPU that warped for its limit has its share, and a warp in between costs
    /// nobody in the long run.
    #[test]
    fn acrn_bvt_warps_within_its_limit(limit in 1..20i64, unwarped in 50..300i64) {
        let warping = Params::new().with("warp_value", 1_000i64).with("warp_limit", limit);
        let params = [warping.with("unwarp_period", unwarped), Params::new(), Params::new()];
        let intervals = hogs("bvt", "acrn3", &Params::new(), &params, 9_000 * MS);
        prop_assert!(intervals[0][0] == (0, limit * MS), "the first warp: {:?}", intervals[0][0]);
        for domain in &intervals {
            let error = gotten(domain, 0, 9_000 * MS) - 3_000 * MS;
            prop_assert!(error.abs() <= (limit + 18) * MS, "{error} ns off");
        }
    }

    /// SEDF without extra time: the slice in every period when the sum fits, and not a nanosecond more.
    #[test]
    fn sedf_gives_each_period_its_slice(reservations in reservations(95)) {
        let params: Vec<Params> =
            reservations.iter().map(|&(period, slice)| Params::new().with("period", period).with("slice", slice)).collect();
        for generation in ["xen3.0.2", "xen3.0.3", "xen3.3.0", "xen4.4.1"] {
            let intervals = hogs("sedf", generation, &Params::new(), &params, 1_000 * MS);
            for (&(period, slice), domain) in reservations.iter().zip(&intervals) {
                // The first period begins one slice after the first wake-up.
                for begin in (1..).map(|k| slice + k * period).take_while(|begin| begin + period <= 1_000 * MS) {
                    let got = gotten(domain, begin, begin + period);
                    prop_assert_eq!(got, slice, "{} period {} at {}", generation, period, begin);
                }
            }
        }
    }

    /// Atropos as intended, without slack: the reserved rate, within the slice and the shortest slice for each of those
    /// that share the pCPU.
    #[test]
    fn atropos_keeps_the_reserved_rate(reservations in reservations(70)) {
        let params: Vec<Params> = reservations
            .iter()
            .map(|&(period, slice)| {
                let params = Params::new().with("nat_period", period).with("nat_slice", slice);
                params.with("latency", period).with("xtratime", 0)
            })
            .collect();
        let (from, to) = (1_000 * MS, 5_000 * MS);
        let intervals = hogs("atropos", "xen2.0-intended", &Params::new(), &params, to);
        for (&(period, slice), domain) in reservations.iter().zip(&intervals) {
            let reserved = (to - from) / period * slice;
            let error = gotten(domain, from, to) - reserved;
            let bound = 2 * slice + 5 * MS * (1 + reservations.len() as i64);
            prop_assert!(error.abs() <= bound, "{slice} in {period}: {error} ns off");
        }
    }

    /// RTDS without extra time: the budget in every period when the sum fits, and not a nanosecond more.
    #[test]
    fn rtds_gives_each_period_its_budget(reservations in reservations(95)) {
        let params: Vec<Params> = reservations
            .iter()
            .map(|&(period, budget)| {
                let params = Params::new().with("period_us", period / 1_000).with("budget_us", budget / 1_000);
                params.with("extratime", 0)
            })
            .collect();
        for generation in ["xen4.17", "xen4.22"] {
            let intervals = hogs("rtds", generation, &Params::new(), &params, 1_000 * MS);
            for (&(period, budget), domain) in reservations.iter().zip(&intervals) {
                // The first deadline is that of the default period of 10 ms, and it takes another period to get rid of the
                // default budget.
                for begin in (1..).map(|k| 10 * MS + k * period).skip_while(|&begin| begin < 100 * MS).take_while(|begin| begin + period <= 1_000 * MS) {
                    let got = gotten(domain, begin, begin + period);
                    prop_assert_eq!(got, budget, "{} period {} at {}", generation, period, begin);
                }
            }
        }
    }

    /// ARINC 653: each slot to the nanosecond, and nothing outside of it.
    #[test]
    fn arinc653_keeps_its_timetable(
        slots in prop::collection::vec((0..3usize, 100_000..9 * MS), 1..8),
        rest in 0..5 * MS,
    ) {
        let entry = |&(domain, runtime): &(usize, i64)| TimetableEntry {
            domain: 1 + domain as i64,
            vcpu: 0,
            runtime: Span::from_ns(runtime),
        };
        let frame = slots.iter().map(|&(_, runtime)| runtime).sum::<i64>() + rest;
        let mut global = Params::new().with("major_frame_ns", frame);
        global.set("entries", ParamValue::Timetable(slots.iter().map(entry).collect()));
        for generation in ["xen4.4.1", "xen4.17", "xen4.22"] {
            let frames = 20;
            let intervals = hogs("arinc653", generation, &global, &vec![Params::new(); 3], frames * frame);
            let mut at = 0;
            for &(owner, runtime) in slots.iter().cycle().take(slots.len() * frames as usize) {
                for (i, domain) in intervals.iter().enumerate() {
                    let expected = if i == owner { runtime } else { 0 };
                    prop_assert_eq!(gotten(domain, at, at + runtime), expected, "{} at {}", generation, at);
                }
                at += runtime;
                if at % frame == frame - rest {
                    let used: i64 = intervals.iter().map(|domain| gotten(domain, at, at + rest)).sum();
                    prop_assert_eq!(used, 0);
                    at += rest;
                }
            }
        }
    }

    /// Long-run shares by weight, within one percent for Credit2. Credit of the 4.x releases clips credits at a period's
    /// worth, which favours small shares: within three percent as long as nobody's share is small.
    #[test]
    fn credit_divides_a_pcpu_by_weight(weights in prop::collection::vec(256..768i64, 2..4)) {
        let params: Vec<Params> = weights.iter().map(|&weight| Params::new().with("weight", weight)).collect();
        let total: i64 = weights.iter().sum();
        let policies = [("credit", "xen4.4.1"), ("credit", "xen4.17"), ("credit2", "xen4.4.1"), ("credit2", "xen4.17")];
        for (policy, generation) in policies {
            let (from, to) = (10_000 * MS, 110_000 * MS);
            let intervals = hogs(policy, generation, &Params::new(), &params, to);
            for (&weight, domain) in weights.iter().zip(&intervals) {
                let share = gotten(domain, from, to) as f64 / (to - from) as f64;
                let fair = weight as f64 / total as f64;
                let bound = if policy == "credit2" { 0.01 } else { 0.03 };
                prop_assert!((share - fair).abs() < bound, "{policy} {generation} {weights:?}: {share:.4} for {fair:.4}");
            }
        }
    }
}
