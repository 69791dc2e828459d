//! Waits for a pCPU, charged to the domains that had it.
//!
//! While a vCPU is runnable, the time that passes is split evenly over the pCPUs it may run on (its hard affinity, within its
//! CPU pool), and each pCPU's part is charged to its occupant: the domain whose vCPU makes progress there, nobody
//! (it idles), or the hypervisor's own work and cold caches. So a domain's waits, over all that are charged with them,
//! sum to the time that its vCPUs were runnable.
//!
//! vCPUs with the same pCPUs form a *class*. For each class, let w(A, t) be the time that vCPUs of domain A have waited up to t,
//! summed over them, since none of them waited last; it is linear in t between two changes. A pCPU that B has from s to e
//! charges B with w(A, e) − w(A, s) for each A: the charge of B is kept as a sum of such terms, added when B loses the pCPU,
//! or when the last vCPU of A ends to wait (w is 0 then), subtracted when it gets it. So a change of occupant costs
//! O(domains that wait), most often none or one; a domain that ends to wait O(pCPUs); nothing is allocated on the way.
//! The hypervisor has every pCPU again and again, for a moment each. For it, it is the other way round: h(t) is the time that it
//! has had pCPUs of the class up to t, summed over them, and a vCPU of A that waits from s to e charges it with h(e) − h(s).
//! Charges count pCPU · ns; divided by the number of pCPUs at the very end they are ns again. What does not divide is
//! handed out ns by ns to the largest remainders (Hamilton's method), of equal ones to the first: rows sum exactly.

use std::fmt;

use vcpulab_host::{CpuMask, DomId, HostState, NEVER, PcpuId, RunState, Span, Time, VcpuId};

/// Waits are attributed on hosts with at most this many domains: what they cost grows with it.
pub const DOMAINS_MAX: usize = 64;

/// Waits are attributed on hosts whose vCPUs are bound to at most this many different sets of pCPUs.
pub const CLASSES_MAX: usize = 64;

/// The reason why waits are not attributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAttributed {
    /// The run was not asked to attribute them.
    NotAsked,
    /// There are too many domains.
    Domains(usize),
    /// vCPUs may run on too many different sets of pCPUs.
    Classes,
    /// The run's sums of pCPU · ns do not fit in 64 bits.
    Long,
    /// The table would have more rows than a result table may have.
    Rows,
}

impl fmt::Display for NotAttributed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAttributed::NotAsked => write!(f, "the run was not asked to attribute waits"),
            NotAttributed::Domains(count) => {
                write!(f, "the host has {count} domains; waits are attributed among at most {DOMAINS_MAX}")
            }
            NotAttributed::Classes => write!(
                f,
                "vCPUs are bound to more than {CLASSES_MAX} different sets of pCPUs; waits are attributed up to that many"
            ),
            NotAttributed::Long => {
                write!(
                    f,
                    "the run is too long for its number of vCPUs: the sum of their waits does not fit in 64 bits"
                )
            }
            NotAttributed::Rows => {
                write!(f, "the run has too many replications: the table `waits` would be too long")
            }
        }
    }
}

/// The cause that a domain's wait is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charged {
    /// The domain that ran.
    Domain(DomId),
    /// No domain: the pCPU was idle.
    Idle,
    /// The hypervisor's own work, and cold caches.
    Hypervisor,
}

/// The time of several together.
#[derive(Clone, Copy, Debug, Default)]
struct Together {
    count: i64,
    /// Up to t it is base + count · t, ns, if their number has not changed since. Sums wrap on the way, so these are bare
    /// numbers.
    base: i64,
}

impl Together {
    /// Total time up to `at`.
    #[inline(always)]
    fn up_to(self, at: Time) -> i64 {
        self.base.wrapping_add(self.count.wrapping_mul(at.ns()))
    }

    /// From `at` on there are `more` of them.
    #[inline(always)]
    fn change(&mut self, more: i64, at: Time) {
        self.count += more;
        self.base = self.base.wrapping_sub(more.wrapping_mul(at.ns()));
    }
}

/// vCPUs that may run on the same pCPUs.
#[derive(Clone, Debug)]
struct Class {
    pcpus: CpuMask,
    /// The pCPUs of the mask as a list.
    members: Vec<PcpuId>,
    /// The domains of which vCPUs wait, as bits.
    waiting: u64,
    /// By domain: its vCPUs that wait. Their time is w(A, t), and 0 while none does.
    domains: Vec<Together>,
    /// The pCPUs that the hypervisor has. Their time is h(t).
    hypervisor: Together,
    /// By occupant, then by domain: the charges, pCPU · ns. Sums wrap on the way; the end of each fits.
    charges: Vec<i64>,
}

impl Class {
    fn new(pcpus: CpuMask, domains: usize) -> Self {
        Class {
            members: pcpus.iter().collect(),
            pcpus,
            waiting: 0,
            domains: vec![Together::default(); domains],
            hypervisor: Together::default(),
            charges: vec![0; (domains + 2) * domains],
        }
    }

    #[inline]
    fn begin(&mut self, domain: usize, now: Time) {
        self.domains[domain].change(1, now);
        self.waiting |= 1 << domain;
        self.charge_hypervisor(domain, -1, now);
    }

    #[inline]
    fn end(&mut self, domain: usize, now: Time, occupants: &[u8]) {
        self.charge_hypervisor(domain, 1, now);
        self.domains[domain].change(-1, now);
        if self.domains[domain].count == 0 {
            self.settle(domain, now, occupants);
            self.domains[domain].base = 0;
            self.waiting &= !(1 << domain);
        }
    }

    /// Charges those who have pCPUs, but for the hypervisor, with what vCPUs of a domain have waited.
    #[inline]
    fn settle(&mut self, domain: usize, at: Time, occupants: &[u8]) {
        let waited = self.domains[domain].up_to(at);
        for p in &self.members {
            let occupant = occupants[p.index()];
            if !self.is_hypervisor(occupant) {
                let charge = &mut self.charges[usize::from(occupant) * self.domains.len() + domain];
                *charge = charge.wrapping_add(waited);
            }
        }
    }

    /// A pCPU gets another occupant: charges up to now are the one's, from now on the other's.
    #[inline]
    fn transfer(&mut self, from: u8, to: u8, at: Time) {
        for (occupant, times) in [(from, 1), (to, -1)] {
            if self.is_hypervisor(occupant) {
                self.hypervisor.change(-times, at);
            } else {
                self.charge(occupant, times, at);
            }
        }
    }

    /// Charges an occupant with `times` what each domain has waited.
    #[inline(always)]
    fn charge(&mut self, occupant: u8, times: i64, at: Time) {
        let row = usize::from(occupant) * self.domains.len();
        let charges = &mut self.charges[row..row + self.domains.len()];
        for domain in ones(self.waiting) {
            let waited = self.domains[domain].up_to(at);
            charges[domain] = charges[domain].wrapping_add(times.wrapping_mul(waited));
        }
    }

    /// Charges the hypervisor with `times` the time that it has had pCPUs, for a domain.
    #[inline(always)]
    fn charge_hypervisor(&mut self, domain: usize, times: i64, at: Time) {
        let row = self.charges.len() - self.domains.len();
        let charge = &mut self.charges[row + domain];
        *charge = charge.wrapping_add(times.wrapping_mul(self.hypervisor.up_to(at)));
    }

    /// The hypervisor is the last of the occupants.
    #[inline(always)]
    fn is_hypervisor(&self, occupant: u8) -> bool {
        usize::from(occupant) == self.domains.len() + 1
    }
}

/// The positions of the bits that are set.
#[inline]
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(first)
    })
}

/// A pCPU that the hypervisor may be at work on.
#[derive(Clone, Debug)]
struct Pcpu {
    /// The occupant when the hypervisor has done its work.
    owner: u8,
    /// Time at which that is.
    until: Time,
    /// The classes whose vCPUs may run on it.
    classes: Vec<u8>,
}

/// A vCPU of a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Vcpu {
    class: u8,
    waits: bool,
}

/// Attributes waits. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Waits {
    domains: usize,
    classes: Vec<Class>,
    pcpus: Vec<Pcpu>,
    /// By pCPU: the occupant that is charged now, a domain's index or one of the two after the last.
    occupants: Vec<u8>,
    /// pCPUs on which the hypervisor is at work, and when the first of them is done.
    busy: Vec<PcpuId>,
    next_free: Time,
    vcpus: Vec<Vcpu>,
    /// Whether waits are attributed: reset at least once, and not off.
    on: bool,
    off: Option<NotAttributed>,
}

impl Waits {
    /// Forgets all, and starts now.
    pub fn reset(&mut self, host: &HostState) {
        let domains = host.domain_count();
        let vcpus = host.vcpu_count();
        *self = Waits { domains, next_free: NEVER, on: domains <= DOMAINS_MAX, ..Waits::default() };
        if !self.on {
            self.off = Some(NotAttributed::Domains(domains));
            return;
        }
        let idle = domains as u8;
        let pcpus = host.pcpu_count() as usize;
        self.pcpus = vec![Pcpu { owner: idle, until: Time::ZERO, classes: Vec::new() }; pcpus];
        self.occupants = vec![idle; pcpus];
        self.vcpus = vec![Vcpu::default(); vcpus];
        for p in (0..host.pcpu_count()).map(PcpuId) {
            self.occupied(host, p);
        }
        // The others have no pCPUs that they may run on yet; they are added when they are created.
        for v in host.all_guest_vcpus().filter(|&v| host.is_there(host.dom(v))) {
            self.affinity_changed(host, v);
            self.runstate_changed(host, v);
        }
    }

    /// The reason why nothing is attributed, if so.
    pub fn off(&self) -> Option<NotAttributed> {
        self.off
    }

    /// A vCPU may have begun or ended to wait.
    #[inline]
    pub fn runstate_changed(&mut self, host: &HostState, v: VcpuId) {
        if self.on {
            let waits = host.runstate(v) == RunState::Runnable;
            if waits != self.vcpus[v.index()].waits {
                self.begin_or_end(host, v, waits);
            }
        }
    }

    fn begin_or_end(&mut self, host: &HostState, v: VcpuId, begins: bool) {
        let (now, domain) = (host.now(), host.dom(v).index());
        self.release(now);
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.waits = begins;
        let class = &mut self.classes[usize::from(vcpu.class)];
        if begins {
            class.begin(domain, now);
        } else {
            class.end(domain, now, &self.occupants);
        }
    }

    /// A pCPU may have another occupant, or the hypervisor works there.
    #[inline]
    pub fn occupied(&mut self, host: &HostState, p: PcpuId) {
        if self.on {
            self.occupy(host, p);
        }
    }

    fn occupy(&mut self, host: &HostState, p: PcpuId) {
        let (domains, current, until) = (self.domains as u8, host.executes(p), host.busy_until(p));
        let owner = if host.is_idle(current) { domains } else { host.dom(current).0 as u8 };
        let pcpu = &self.pcpus[p.index()];
        if (pcpu.owner, pcpu.until) == (owner, until) {
            return;
        }
        let (now, hypervisor) = (host.now(), domains + 1);
        self.release(now);
        let was_busy = self.occupants[p.index()] == hypervisor;
        let pcpu = &mut self.pcpus[p.index()];
        pcpu.owner = owner;
        pcpu.until = until;
        let is_busy = until > now;
        if is_busy {
            self.next_free = self.next_free.min(until);
        }
        if is_busy && !was_busy {
            self.busy.push(p);
        } else if was_busy && !is_busy {
            // The rest of its refill is no longer wanted.
            self.busy.retain(|&busy| busy != p);
        }
        self.transfer(p, if is_busy { hypervisor } else { owner }, now);
    }

    /// A vCPU may now run on other pCPUs.
    pub fn affinity_changed(&mut self, host: &HostState, v: VcpuId) {
        if !self.on {
            return;
        }
        let pcpus = *host.affinity(v);
        let class = match self.classes.iter().position(|class| class.pcpus == pcpus) {
            Some(class) => class,
            None if self.classes.len() == CLASSES_MAX => {
                self.off = Some(NotAttributed::Classes);
                self.on = false;
                return;
            }
            None => {
                let class = self.classes.len();
                let mut new = Class::new(pcpus, self.domains);
                let hypervisors = pcpus.iter().filter(|p| new.is_hypervisor(self.occupants[p.index()]));
                new.hypervisor.change(hypervisors.count() as i64, host.now());
                self.classes.push(new);
                pcpus.iter().for_each(|p| self.pcpus[p.index()].classes.push(class as u8));
                class
            }
        };
        let before = std::mem::replace(&mut self.vcpus[v.index()].class, class as u8);
        if self.vcpus[v.index()].waits {
            let (now, domain) = (host.now(), host.dom(v).index());
            self.release(now);
            self.classes[usize::from(before)].end(domain, now, &self.occupants);
            self.classes[class].begin(domain, now);
        }
    }

    /// The time that each domain waited for each other, from the reset up to now, ns. Domains are in order of creation.
    ///
    /// # Errors
    /// The reason why nothing was attributed.
    pub fn read(
        &self,
        host: &HostState,
        elapsed: Span,
    ) -> Result<Vec<(DomId, Charged, Span)>, NotAttributed> {
        if !self.on {
            return Err(self.off.unwrap_or(NotAttributed::NotAsked));
        }
        // No charge is larger than this; the sums must not have wrapped in the end.
        let most = i128::from(elapsed.ns()) * self.vcpus.len() as i128 * self.pcpus.len() as i128;
        if most > i128::from(i64::MAX) {
            return Err(NotAttributed::Long);
        }
        let (mut settled, now) = (self.clone(), host.now());
        settled.release(now);
        for class in &mut settled.classes {
            for domain in ones(class.waiting) {
                class.charge_hypervisor(domain, class.domains[domain].count, now);
                class.settle(domain, now, &settled.occupants);
            }
        }
        let occupants = self.domains + 2;
        let mut rows = Vec::new();
        for domain in 0..self.domains {
            let mut waits = vec![0; occupants];
            for class in &settled.classes {
                let charges: Vec<i64> =
                    (0..occupants).map(|o| class.charges[o * self.domains + domain]).collect();
                share_out(&charges, i64::from(class.pcpus.len()), &mut waits);
            }
            let charged = |occupant: usize| match occupant.checked_sub(self.domains) {
                None => Charged::Domain(DomId(occupant as u32)),
                Some(0) => Charged::Idle,
                Some(_) => Charged::Hypervisor,
            };
            let waited = waits.into_iter().enumerate().filter(|&(_, ns)| ns != 0);
            rows.extend(
                waited.map(|(occupant, ns)| (DomId(domain as u32), charged(occupant), Span::from_ns(ns))),
            );
        }
        Ok(rows)
    }

    /// pCPUs on which the hypervisor has done its work are their owners' from then on.
    #[inline]
    fn release(&mut self, now: Time) {
        if self.next_free <= now {
            self.release_due(now);
        }
    }

    fn release_due(&mut self, now: Time) {
        self.next_free = NEVER;
        let mut i = 0;
        while let Some(&p) = self.busy.get(i) {
            let Pcpu { owner, until, .. } = self.pcpus[p.index()];
            if until <= now {
                // No vCPU has begun or ended to wait since then: this is called before any does.
                self.transfer(p, owner, until);
                self.busy.swap_remove(i);
            } else {
                self.next_free = self.next_free.min(until);
                i += 1;
            }
        }
    }

    #[inline(always)]
    fn transfer(&mut self, p: PcpuId, to: u8, at: Time) {
        let from = std::mem::replace(&mut self.occupants[p.index()], to);
        if from != to {
            for &class in &self.pcpus[p.index()].classes {
                self.classes[usize::from(class)].transfer(from, to, at);
            }
        }
    }
}

/// Adds each charge divided by `parts`, rounded so that together they are the sum of the charges divided by it (which has no
/// remainder): what is left over goes to the largest remainders, of equal ones to the first.
fn share_out(charges: &[i64], parts: i64, waits: &mut [i64]) {
    let mut left = 0;
    for (wait, charge) in waits.iter_mut().zip(charges) {
        *wait += charge / parts;
        left += charge % parts;
    }
    let mut order: Vec<usize> = (0..charges.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(charges[i] % parts));
    for &i in &order[..(left / parts) as usize] {
        waits[i] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_shared_out() {
        let mut waits = vec![0; 4];
        share_out(&[10, 11, 0, 9], 3, &mut waits);
        assert_eq!(waits, [3, 4, 0, 3]);
        // Equal remainders: the first comes first.
        let mut waits = vec![0; 3];
        share_out(&[4, 4, 4], 3, &mut waits);
        assert_eq!(waits, [2, 1, 1]);
    }
}
