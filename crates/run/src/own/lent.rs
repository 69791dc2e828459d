//! The host as a policy from elsewhere sees it: [`PolicyContext`](vcpulab_host::PolicyContext), with plain integers for ids, each of which is checked.
//!
//! A hook borrows the host's context for as long as it lasts, so what is elsewhere holds none of it: it reaches for what is
//! [lent](lend) at the moment, and finds nothing outside a hook.

use std::fmt;

use environmental::environmental;
use vcpulab_host::{CpuMask, DomId, NEVER, PcpuId, PolicyContext as Host, Time, TimerId, VcpuId};

environmental!(lent: Host);

/// Most timers of a policy: more are a mistake.
const TIMERS_MAX: usize = 1_000_000;

/// The reason why a request is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No hook lasts.
    NotLent,
    /// There is nothing of that number.
    Unknown(String),
    /// The request is not possible.
    Impossible(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotLent => f.write_str("a context is there during a hook only"),
            Refused::Unknown(what) | Refused::Impossible(what) => f.write_str(what),
        }
    }
}

type Met<T> = Result<T, Refused>;

/// Lends the host's context to whatever `hook` calls.
pub fn lend<R>(host: &mut Host, hook: impl FnOnce() -> R) -> R {
    lent::using(host, hook)
}

/// Asks the host whose context is lent at the moment.
///
/// # Errors
/// None is, or it refuses.
pub fn with<R>(ask: impl FnOnce(&mut Host) -> Met<R>) -> Met<R> {
    lent::with(ask).unwrap_or(Err(Refused::NotLent))
}

/// Defines the questions that a policy may ask about a vCPU, pCPU, domain or timer, or about the host.
macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident($host:ident $(, $id:ident: $kind:ty)*) -> $answer:ty $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// It is refused.
        pub fn $name($($id: $kind),*) -> Met<$answer> {
            with(|$host| $body)
        }
    )*};
}

questions! {
    /// The time, ns since the host started.
    now(host) -> i64 { Ok(host.now().ns()) }
    /// The pCPUs of this scheduler.
    pcpus(host) -> CpuMask { Ok(*host.pcpus()) }
    /// The vCPUs of the domains in this scheduler's CPU pool, in order of creation.
    guest_vcpus(host) -> Vec<u32> { Ok(host.pool_vcpus().map(|v| v.0).collect()) }
    /// The pCPU on which the code at hand executes.
    executing(host) -> u32 { Ok(host.executing().0) }
    /// The socket a pCPU is on.
    socket(host, p: u32) -> u32 { Ok(host.socket(pcpu(host, p)?)) }
    /// The core a pCPU is a thread of, counted over the whole host.
    core(host, p: u32) -> u32 { Ok(host.core(pcpu(host, p)?)) }
    /// The NUMA node a pCPU is on.
    node(host, p: u32) -> u32 { Ok(host.node(pcpu(host, p)?)) }
    /// The vCPU that a pCPU executes; during a decision still the outgoing one.
    current(host, p: u32) -> u32 { Ok(host.current(pcpu(host, p)?).0) }
    /// The idle vCPU of a pCPU.
    idle(host, p: u32) -> u32 { Ok(host.idle(pcpu(host, p)?).0) }
    /// Whether a vCPU is an idle vCPU.
    is_idle(host, v: u32) -> bool { Ok(host.is_idle(vcpu(host, v)?)) }
    /// Whether a vCPU runs now, on its processor.
    is_current(host, v: u32) -> bool { Ok(host.is_current(vcpu(host, v)?)) }
    /// The pCPU that a vCPU is assigned to: where it runs, ran last, or has been placed.
    processor(host, v: u32) -> u32 { Ok(host.processor(vcpu(host, v)?).0) }
    /// Whether a vCPU is neither blocked, paused, parked nor migrating.
    runnable(host, v: u32) -> bool { Ok(host.runnable(vcpu(host, v)?)) }
    /// The pCPUs it may run on.
    affinity(host, v: u32) -> CpuMask { Ok(*host.affinity(vcpu(host, v)?)) }
    /// The pCPUs it prefers, if any were given.
    soft_affinity(host, v: u32) -> Option<CpuMask> {
        let v = vcpu(host, v)?;
        Ok(host.soft_affinity(v).copied())
    }
    /// The domain of a vCPU; idle vCPUs have none.
    dom(host, v: u32) -> u32 { Ok(host.dom(guest(host, v)?).0) }
    /// The vCPUs of a domain, in order.
    vcpus_of(host, d: u32) -> Vec<u32> { Ok(host.vcpus_of(domain(host, d)?).map(|v| v.0).collect()) }
    /// A domain's number as an administrator sees it (0: Dom0).
    domain_number(host, d: u32) -> i64 { Ok(host.domain_number(domain(host, d)?)) }
    /// Domain number and vCPU number in the domain; (-1, p) for the idle vCPU of pCPU p.
    name(host, v: u32) -> (i64, i64) { Ok(host.name(vcpu(host, v)?)) }
    /// The time of its last switch, in or out, ns since the host started (0: none yet).
    switched_at(host, v: u32) -> i64 { Ok(host.switched_at(vcpu(host, v)?).ns()) }
    /// The time that it has run so far, ns.
    running_ns(host, v: u32) -> i64 { Ok(host.run_times(vcpu(host, v)?).running_ns.ns()) }
    /// Asks a pCPU of this scheduler to decide, once the event at hand has been handled.
    raise_reschedule(host, p: u32) -> () {
        let p = own_pcpu(host, p)?;
        host.raise_reschedule(p);
        Ok(())
    }
    /// Assigns a vCPU, not running, to a pCPU of this scheduler.
    set_processor(host, v: u32, p: u32) -> () {
        let (v, p) = (own_vcpu(host, v)?, own_pcpu(host, p)?);
        if host.is_current(v) && host.processor(v) != p {
            let (name, own) = (called(host, v), host.processor(v).0);
            return Err(Refused::Impossible(format!("{name} runs on pCPU {own}: it cannot move now")));
        }
        host.set_processor(v, p);
        Ok(())
    }
    /// Asks for a running vCPU to be moved: once it has stopped, it goes to the pCPU that `pick` says.
    start_migration(host, v: u32) -> () {
        let v = own_vcpu(host, v)?;
        host.start_migration(v);
        Ok(())
    }
    /// Makes a vCPU not runnable until it is unparked, as a cap does. Parking twice changes nothing.
    park(host, v: u32) -> () {
        let v = own_vcpu(host, v)?;
        host.park(v);
        Ok(())
    }
    /// Ends the parking of a vCPU, if it is parked.
    unpark(host, v: u32) -> () {
        let v = own_vcpu(host, v)?;
        host.unpark(v);
        Ok(())
    }
    /// Whether the policy has parked a vCPU.
    is_parked(host, v: u32) -> bool { Ok(host.is_parked(vcpu(host, v)?)) }
    /// Makes a timer, stopped; when due, the hook `timer` gets the token.
    new_timer(host, p: u32, token: u32) -> u32 {
        let p = own_pcpu(host, p)?;
        if host.timer_count() >= TIMERS_MAX {
            return Err(Refused::Impossible(format!("more than {TIMERS_MAX} timers; set one anew instead")));
        }
        Ok(host.new_timer(p, token).0)
    }
    /// Sets or moves a timer, ns since the host started; a time already past counts as now.
    set_timer(host, timer: u32, at: i64) -> () {
        let timer = own_timer(host, timer)?;
        host.set_timer(timer, Time::from_ns(at));
        Ok(())
    }
    /// Stops a timer.
    stop_timer(host, timer: u32) -> () {
        let timer = own_timer(host, timer)?;
        host.stop_timer(timer);
        Ok(())
    }
    /// The time at which a timer is due, ns since the host started; `None`: stopped.
    timer_expiry(host, timer: u32) -> Option<i64> {
        let at = host.timer_expiry(own_timer(host, timer)?);
        Ok((at != NEVER).then(|| at.ns()))
    }
}

/// The pCPU of that number.
pub(super) fn pcpu(host: &Host, p: u32) -> Met<PcpuId> {
    known(p, host.pcpu_count() as usize, "pCPU").map(PcpuId)
}

/// A pCPU in the policy's own CPU pool.
fn own_pcpu(host: &Host, p: u32) -> Met<PcpuId> {
    let p = pcpu(host, p)?;
    if host.pcpus().contains(p) {
        return Ok(p);
    }
    Err(Refused::Impossible(format!("pCPU {} is in another CPU pool", p.0)))
}

fn vcpu(host: &Host, v: u32) -> Met<VcpuId> {
    known(v, host.vcpu_count(), "vCPU").map(VcpuId)
}

/// A vCPU of a domain, not an idle one.
fn guest(host: &Host, v: u32) -> Met<VcpuId> {
    let v = vcpu(host, v)?;
    if host.is_idle(v) {
        let what = format!("vCPU {} is the idle one of pCPU {}: it is no domain's", v.0, v.0);
        return Err(Refused::Impossible(what));
    }
    Ok(v)
}

/// A vCPU of a domain in the policy's own CPU pool.
fn own_vcpu(host: &Host, v: u32) -> Met<VcpuId> {
    let v = guest(host, v)?;
    if host.pool_of(host.dom(v)) == host.pool_of_pcpu(host.first_pcpu()) {
        return Ok(v);
    }
    Err(Refused::Impossible(format!("{} is in another CPU pool", called(host, v))))
}

fn domain(host: &Host, d: u32) -> Met<DomId> {
    known(d, host.domain_count(), "domain").map(DomId)
}

/// A timer that the policy made, not the host or another CPU pool's policy.
fn own_timer(host: &Host, timer: u32) -> Met<TimerId> {
    let timer = known(timer, host.timer_count(), "timer").map(TimerId)?;
    if host.is_own_timer(timer) {
        return Ok(timer);
    }
    Err(Refused::Impossible(format!("timer {} is not one that this policy made", timer.0)))
}

fn known(id: u32, count: usize, what: &str) -> Met<u32> {
    if (id as usize) < count {
        return Ok(id);
    }
    Err(Refused::Unknown(format!("there is no {what} {id}; the host has {count}, numbered from 0")))
}

/// A vCPU's name in messages.
pub(super) fn called(host: &Host, v: VcpuId) -> String {
    let (domain, vcpu) = host.name(v);
    format!("vCPU {vcpu} of domain {domain}")
}
