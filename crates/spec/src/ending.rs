//! How the lives of domains end: when the guest is over, when the toolstack begins to destroy the domain, and when it is gone.

use crate::action::LifeChange;
use crate::domain::{DomainSpec, OnCrash};
use crate::profile::Constants;

/// A page of a domain's memory, bytes.
const PAGE_BYTES: u64 = 4096;

/// The end of a domain's life, from when it begins. Times are ns since the host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// When it is asked for, or happens.
    pub begins: i64,
    /// When the guest is over, unless the domain is destroyed without asking it.
    pub over: Option<i64>,
    /// When the toolstack begins to destroy the domain; `None`: it does not.
    pub killed: Option<i64>,
    /// When it is gone.
    pub gone: Option<i64>,
    /// Did the guest crash?
    pub crashed: bool,
    /// Is it created anew then?
    pub again: bool,
}

impl Ending {
    /// How a change ends the life of a domain; `None`: it does not.
    pub fn of(domain: &DomainSpec, constants: &Constants, change: LifeChange, at: i64) -> Option<Self> {
        let (over, again, crashed) = match change {
            LifeChange::Create | LifeChange::Save | LifeChange::Restore => return None,
            LifeChange::Shutdown => (Some(at.saturating_add(domain.shutdown_ns)), false, false),
            LifeChange::Reboot => (Some(at.saturating_add(domain.shutdown_ns)), true, false),
            LifeChange::Crash => (Some(at), domain.on_crash == OnCrash::Restart, true),
            LifeChange::Destroy => (None, false, false),
        };
        let kept = crashed && domain.on_crash == OnCrash::Preserve;
        let killed = match over {
            None => Some(at),
            Some(over) => (!kept).then(|| over.saturating_add(constants.toolstack_ns)),
        };
        let pages = domain.memory_bytes.div_ceil(PAGE_BYTES) as i64;
        let gone = killed.map(|killed| killed.saturating_add(pages.saturating_mul(constants.free_page_ns)));
        Some(Ending { begins: at, over, killed, gone, crashed, again })
    }
}
