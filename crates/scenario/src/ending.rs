//! How the lives of domains end: when the guest is over, when the toolstack begins to destroy the domain, and when it is gone.

use vcpulab_host::{Action, DomId, Time, TimedAction};

use crate::profile::Constants;
use crate::spec::{DomainSpec, LifeChange, OnCrash, Spec};

/// A page of a domain's memory, bytes.
const PAGE_BYTES: u64 = 4096;

/// The end of a domain's life, from when it begins. Times are ns since the host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// When it is asked for, or happens.
    pub begins: Time,
    /// When the guest is over, unless the domain is destroyed without asking it.
    pub over: Option<Time>,
    /// When the toolstack begins to destroy the domain; `None`: it does not.
    pub killed: Option<Time>,
    /// When it is gone.
    pub gone: Option<Time>,
    /// Did the guest crash?
    pub crashed: bool,
    /// Is it created anew then?
    pub again: bool,
}

impl Ending {
    /// How a change ends the life of a domain; `None`: it does not.
    pub fn of(domain: &DomainSpec, constants: &Constants, change: LifeChange, at: Time) -> Option<Self> {
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

    /// What the host is to do, and when. What would last for no time is left out.
    fn steps(&self, d: DomId) -> impl Iterator<Item = TimedAction> {
        let lasts = |from: Option<Time>, to: Option<Time>| from.filter(|_| from != to);
        let shut_down = if self.crashed { Action::Crash(d) } else { Action::Shutdown(d) };
        let last = if self.again { Action::Reboot(d) } else { Action::Destroy(d) };
        let over = lasts(self.over, self.gone).map(|at| (at, shut_down));
        let killed = lasts(self.killed, self.gone).map(|at| (at, Action::Kill(d)));
        let gone = self.gone.map(|at| (at, last));
        [over, killed, gone].into_iter().flatten().map(|(at, action)| TimedAction { at, action })
    }
}

/// What the host is to do in the order of the actions, and of which ending each step is.
#[derive(Default)]
pub(crate) struct Endings(Vec<(Option<usize>, TimedAction)>);

impl Endings {
    /// The life of a domain changes. What is left of an ending that has begun is off.
    pub fn change(&mut self, spec: &Spec, domain: usize, change: LifeChange, at: Time) {
        let d = DomId(domain as u32);
        let action = match change {
            LifeChange::Create => Some(Action::Create(d)),
            LifeChange::Save => Some(Action::Save(d)),
            LifeChange::Restore => Some(Action::Restore(d)),
            LifeChange::Shutdown | LifeChange::Reboot | LifeChange::Crash | LifeChange::Destroy => None,
        };
        self.other(at, action.into_iter().collect());
        if let Some(ending) = Ending::of(&spec.domains[domain], &spec.host.constants, change, at) {
            self.0.retain(|(of, step)| *of != Some(domain) || step.at < at);
            self.0.extend(ending.steps(d).map(|step| (Some(domain), step)));
        }
    }

    /// Something else is done.
    pub fn other(&mut self, at: Time, actions: Vec<Action>) {
        self.0.extend(actions.into_iter().map(|action| (None, TimedAction { at, action })));
    }

    /// All steps; what is due at one instant is in order.
    pub fn actions(self) -> impl Iterator<Item = TimedAction> {
        self.0.into_iter().map(|(_, step)| step)
    }
}
