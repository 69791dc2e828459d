//! The ends of domains' lives: the times at which the guest is over, the toolstack begins to destroy the domain, and the
//! domain is gone.

use vcpulab_host::{Span, Time};

use crate::action::LifeChange;
use crate::domain::{DomainSpec, OnCrash};
use crate::profile::Constants;

/// A page of a domain's memory, bytes.
const PAGE_BYTES: u64 = 4096;

/// The end of a domain's life, step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Time of the request, or of the crash.
    pub begins: Time,
    /// End of the guest; `None`: the domain is destroyed without asking it.
    pub over: Option<Time>,
    /// Time at which the toolstack begins to destroy the domain; `None`: it does not.
    pub killed: Option<Time>,
    /// Time at which it is gone.
    pub gone: Option<Time>,
    /// Whether the guest crashed.
    pub crashed: bool,
    /// Whether the domain is created again then.
    pub again: bool,
}

impl Ending {
    /// The end that a change brings to the life of a domain; `None`: none.
    pub fn of(domain: &DomainSpec, constants: &Constants, change: LifeChange, at: Time) -> Option<Self> {
        let (over, again, crashed) = match change {
            LifeChange::Create | LifeChange::Save | LifeChange::Restore => return None,
            LifeChange::Shutdown => (Some(at.saturating_add(domain.shutdown)), false, false),
            LifeChange::Reboot => (Some(at.saturating_add(domain.shutdown)), true, false),
            LifeChange::Crash => (Some(at), domain.on_crash == OnCrash::Restart, true),
            LifeChange::Destroy => (None, false, false),
        };
        let kept = crashed && domain.on_crash == OnCrash::Preserve;
        let killed = match over {
            None => Some(at),
            Some(over) => (!kept).then(|| over.saturating_add(Span::from_ns(constants.toolstack_ns))),
        };
        let pages = domain.memory_bytes.div_ceil(PAGE_BYTES) as i64;
        let freeing = Span::from_ns(constants.free_page_ns).saturating_mul(pages);
        let gone = killed.map(|killed| killed.saturating_add(freeing));
        Some(Ending { begins: at, over, killed, gone, crashed, again })
    }
}
