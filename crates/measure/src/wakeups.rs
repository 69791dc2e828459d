//! How long vCPUs wait for a pCPU, by what the wait began with.

use hdrhistogram::Histogram;
use vcpulab_host::{Context, DomId, Span, Switch, VcpuId, WakeCause};

use crate::waits::DOMAINS_MAX;

/// Waits are kept to two significant digits, from 1 ns up to 1000 s.
const WAIT_DIGITS: u8 = 2;
const WAIT_MAX_NS: u64 = 1_000_000_000_000;

/// What a wait began with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The vCPU lost its pCPU although it could have gone on.
    Preemption,
    /// It woke. The domain is that of the vCPU which sent the event that woke it, if one did.
    WakeUp(WakeCause, Option<DomId>),
    /// Origins are not told apart.
    Any,
}

/// Waits with the same origin.
#[derive(Clone, Debug)]
pub struct Waited {
    /// Each wait, ns.
    pub histogram: Histogram<u32>,
    /// All of them together, ns.
    pub sum_ns: Span,
    /// The longest, ns.
    pub max_ns: Span,
}

impl Waited {
    fn none() -> Self {
        Waited { histogram: empty(), sum_ns: 0, max_ns: 0 }
    }

    /// How many, in steps of a quarter of an octave: from, below, count. Waits of 1000 s and more count as 1000 s.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let mut buckets: Vec<(u64, u64, u64)> = Vec::new();
        for value in self.histogram.iter_recorded() {
            let from = value.value_iterated_to();
            // The two bits below the highest one that is set stay.
            let step = 1u64 << from.max(1).ilog2().saturating_sub(2);
            let low = from / step * step;
            match buckets.last_mut() {
                Some(last) if last.0 == low => last.2 += value.count_since_last_iteration(),
                _ => buckets.push((low, low + step, value.count_since_last_iteration())),
            }
        }
        buckets
    }
}

fn empty() -> Histogram<u32> {
    let mut waits = Histogram::new_with_bounds(1, 1_000_000_000, WAIT_DIGITS).expect("the bounds are valid");
    waits.auto(true);
    waits
}

/// The waits of every domain.
#[derive(Clone, Debug, Default)]
pub struct WaitsByOrigin {
    /// By domain; made when first needed.
    domains: Vec<Vec<(Origin, Waited)>>,
    /// By vCPU: the domain that sent the event which woke it last.
    wakers: Vec<Option<DomId>>,
    /// Are origins told apart?
    origins: bool,
    /// And events by their senders?
    senders: bool,
}

impl WaitsByOrigin {
    /// Forgets all. From now on waits are told apart by their origins, or not.
    pub fn reset(&mut self, host: &Context, origins: bool) {
        self.domains.clear();
        self.domains.resize(host.domain_count(), Vec::new());
        self.wakers.resize(host.vcpu_count(), None);
        self.origins = origins;
        self.senders = origins && host.domain_count() <= DOMAINS_MAX;
    }

    /// A vCPU was woken.
    #[inline]
    pub fn woke(&mut self, host: &Context, v: VcpuId, by: Option<VcpuId>) {
        if self.senders {
            self.wakers[v.index()] = by.map(|by| host.dom(by));
        }
    }

    /// A wait is over.
    #[inline]
    pub fn switched(&mut self, host: &Context, switch: &Switch) {
        let origin = match switch.woken {
            _ if !self.origins => Origin::Any,
            None => Origin::Preemption,
            Some(WakeCause::Event) => Origin::WakeUp(WakeCause::Event, self.wakers[switch.to.index()]),
            Some(cause) => Origin::WakeUp(cause, None),
        };
        let own = &mut self.domains[host.dom(switch.to).index()];
        let index = match own.iter().position(|(known, _)| *known == origin) {
            Some(index) => index,
            None => {
                own.push((origin, Waited::none()));
                own.len() - 1
            }
        };
        let waited = &mut own[index].1;
        waited.histogram.saturating_record((switch.waited_ns as u64).min(WAIT_MAX_NS));
        waited.sum_ns += switch.waited_ns;
        waited.max_ns = waited.max_ns.max(switch.waited_ns);
    }

    /// All waits of a domain.
    pub fn all(&self, d: DomId) -> Histogram<u32> {
        let mut all = empty();
        for (_, waited) in &self.domains[d.index()] {
            all.add(&waited.histogram).expect("a histogram that grows has room");
        }
        all
    }

    /// Those that began with a wake-up, by cause.
    pub fn wake_ups<'a>(&'a self, d: DomId) -> Vec<(WakeCause, Option<DomId>, &'a Waited)> {
        let mut own: Vec<&(Origin, Waited)> = self.domains[d.index()].iter().collect();
        own.sort_by_key(|(origin, _)| *origin);
        let wake_up = |entry: &'a (Origin, Waited)| match entry.0 {
            Origin::Preemption | Origin::Any => None,
            Origin::WakeUp(cause, by) => Some((cause, by, &entry.1)),
        };
        own.into_iter().filter_map(wake_up).collect()
    }
}
