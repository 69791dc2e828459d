//! Waits of vCPUs for a pCPU, by their origin: preemption, or the cause of a wake-up.

use vcpulab_histogram::{Histogram, Reading};
use vcpulab_host::{DomId, HostState, Span, Switch, VcpuId, WakeCause};

use crate::waits::attribution::DOMAINS_MAX;

/// Waits are kept to this many bits, two significant digits, up to 1000 s.
pub const WAIT_BITS: u32 = 7;
const WAIT_MAX_NS: u64 = 1_000_000_000_000;

/// The waits of a domain with the same origin.
#[derive(Clone, Debug, Default)]
pub struct Waited {
    /// Each wait, ns; those of 1000 s and more count as 1000 s.
    pub histogram: Histogram<WAIT_BITS>,
    /// Sum of the waits, ns.
    pub sum_ns: Span,
    /// The longest, ns.
    pub max_ns: Span,
}

impl Waited {
    #[inline]
    fn add(&mut self, wait: Span) {
        self.histogram.record((wait.ns() as u64).min(WAIT_MAX_NS));
        self.sum_ns += wait;
        self.max_ns = self.max_ns.max(wait);
    }
}

/// Waits in steps of a quarter of an octave: from, below, count.
pub fn steps(waits: &Reading<WAIT_BITS>) -> Vec<(u64, u64, u64)> {
    let mut steps: Vec<(u64, u64, u64)> = Vec::new();
    for (wait, count) in waits.buckets() {
        // The two bits below the highest one that is set stay.
        let step = 1u64 << wait.max(1).ilog2().saturating_sub(2);
        let low = wait / step * step;
        match steps.last_mut() {
            Some(last) if last.0 == low => last.2 += count,
            _ => steps.push((low, low + step, count)),
        }
    }
    steps
}

/// Origins without those that name a sender: preemption, and each cause of wake-ups.
const PLAIN: usize = 1 + CAUSES.len();

const CAUSES: [WakeCause; 5] =
    [WakeCause::Start, WakeCause::Timer, WakeCause::Interrupt, WakeCause::Event, WakeCause::Unpause];

/// The waits of every domain.
#[derive(Clone, Debug, Default)]
pub struct WaitsByOrigin {
    /// By domain and number of the origin: where in `waited` it is, plus 1 (0: nowhere yet).
    places: Vec<u32>,
    waited: Vec<Waited>,
    /// Number of origins that are distinguished: one, those without senders, or all.
    origins: usize,
}

/// The number of the origin of a wait that begins with a wake-up by an event; senders are told apart by it.
#[derive(Clone, Copy, Debug)]
pub struct Sender(u32);

impl Default for Sender {
    /// No known sender.
    fn default() -> Self {
        Sender(number_of(WakeCause::Event) as u32)
    }
}

impl WaitsByOrigin {
    /// Forgets all. From now on origins are distinguished, or not.
    pub fn reset(&mut self, host: &HostState, origins: bool) {
        let domains = host.domain_count();
        self.origins = match origins {
            false => 1,
            true if domains > DOMAINS_MAX => PLAIN,
            true => PLAIN + domains,
        };
        self.waited.clear();
        self.places.clear();
        self.places.resize(domains * self.origins, 0);
    }

    /// The origin of the wait of a vCPU that was woken by an event of `by`.
    #[inline]
    pub fn sender(&self, host: &HostState, by: Option<VcpuId>) -> Sender {
        match by {
            Some(by) if self.origins > PLAIN => Sender(PLAIN as u32 + host.dom(by).0),
            _ => Sender::default(),
        }
    }

    /// A wait is over; if it began with an event, `sender` sent it.
    #[inline]
    pub fn switched(&mut self, host: &HostState, switch: &Switch, sender: Sender) {
        let origin = match switch.woken {
            _ if self.origins == 1 => 0,
            None => 0,
            Some(WakeCause::Event) => sender.0 as usize,
            Some(cause) => number_of(cause),
        };
        let place = &mut self.places[host.dom(switch.to).index() * self.origins + origin];
        if *place == 0 {
            if self.waited.len() == self.waited.capacity() {
                // Domains meet about as many origins as one another: room for one more each, rather than twice as much.
                self.waited.reserve_exact(host.domain_count());
            }
            self.waited.push(Waited::default());
            *place = self.waited.len() as u32;
        }
        self.waited[*place as usize - 1].add(switch.waited_ns);
    }

    /// A domain's waits by the number of their origin.
    fn of(&self, d: DomId) -> impl Iterator<Item = (usize, &Waited)> {
        let places = &self.places[d.index() * self.origins..][..self.origins];
        let met = places.iter().enumerate().filter(|&(_, &place)| place != 0);
        met.map(|(origin, &place)| (origin, &self.waited[place as usize - 1]))
    }

    /// All waits of a domain.
    pub fn all(&self, d: DomId) -> Reading<WAIT_BITS> {
        Histogram::read_together(self.of(d).map(|(_, waited)| &waited.histogram))
    }

    /// All waits that began with a wake-up. `None` if origins are not distinguished.
    pub fn after_waking(&self, d: DomId) -> Option<Reading<WAIT_BITS>> {
        let wake_ups = self.of(d).filter(|&(origin, _)| origin > 0);
        (self.origins > 1).then(|| Histogram::read_together(wake_ups.map(|(_, waited)| &waited.histogram)))
    }

    /// Waits that began with a wake-up, by cause and, for an event, by the domain of the vCPU that sent it, if a vCPU
    /// did. Empty if origins are not distinguished.
    pub fn wake_ups(&self, d: DomId) -> Vec<(WakeCause, Option<DomId>, &Waited)> {
        let mut wake_ups: Vec<_> = self
            .of(d)
            .filter(|&(origin, _)| origin > 0)
            .map(|(origin, waited)| match origin.checked_sub(PLAIN) {
                None => (CAUSES[origin - 1], None, waited),
                Some(by) => (WakeCause::Event, Some(DomId(by as u32)), waited),
            })
            .collect();
        wake_ups.sort_by_key(|&(cause, by, _)| (cause, by));
        wake_ups
    }
}

/// The number of a wake-up; 0 is preemption.
fn number_of(cause: WakeCause) -> usize {
    1 + cause as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_count_as_they_are_up_to_1000_s() {
        let mut waited = Waited::default();
        for seconds in [3, 900, 5000] {
            waited.add(Span::from_secs(seconds));
        }
        let at = |share| waited.histogram.read().quantile(share) as f64 / 1e9;
        assert!((at(0.3) / 3.0 - 1.0).abs() < 0.01 && (at(0.6) / 900.0 - 1.0).abs() < 0.01);
        assert!((at(1.0) / 1000.0 - 1.0).abs() < 0.01);
        assert_eq!((waited.max_ns.ns(), waited.sum_ns.ns()), (5_000_000_000_000, 5_903_000_000_000));
    }
}
