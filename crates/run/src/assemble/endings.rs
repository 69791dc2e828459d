//! The ends of domains' lives as the host's actions.

use vcpulab_host::{Action, DomId, Time, TimedAction};
use vcpulab_spec::{Ending, LifeChange, Spec};

/// The steps of the host in the order of the actions, each with the domain whose ending it is part of.
#[derive(Default)]
pub(crate) struct Endings(Vec<(Option<DomId>, TimedAction)>);

impl Endings {
    /// The life of a domain changes. What is left of an ending that has begun is off.
    pub fn change(&mut self, spec: &Spec, d: DomId, change: LifeChange, at: Time) {
        let action = match change {
            LifeChange::Create => Some(Action::Create(d)),
            LifeChange::Save => Some(Action::Save(d)),
            LifeChange::Restore => Some(Action::Restore(d)),
            LifeChange::Shutdown | LifeChange::Reboot | LifeChange::Crash | LifeChange::Destroy => None,
        };
        self.other(at, action.into_iter().collect());
        if let Some(ending) = Ending::of(&spec.domains[d], &spec.host.constants, change, at) {
            self.0.retain(|(of, step)| *of != Some(d) || step.at < at);
            self.0.extend(steps(ending, d).map(|step| (Some(d), step)));
        }
    }

    /// Adds actions that belong to no ending.
    pub fn other(&mut self, at: Time, actions: Vec<Action>) {
        self.0.extend(actions.into_iter().map(|action| (None, TimedAction { at, action })));
    }

    /// All steps; what is due at one instant is in order.
    pub fn actions(self) -> impl Iterator<Item = TimedAction> {
        self.0.into_iter().map(|(_, step)| step)
    }
}

/// The steps of an ending, with their times. What would last for no time is left out.
fn steps(ending: Ending, d: DomId) -> impl Iterator<Item = TimedAction> {
    let lasts = |from: Option<Time>, to: Option<Time>| from.filter(|_| from != to);
    let shut_down = if ending.crashed { Action::Crash(d) } else { Action::Shutdown(d) };
    let last = if ending.again { Action::Reboot(d) } else { Action::Destroy(d) };
    let over = lasts(ending.over, ending.gone).map(|at| (at, shut_down));
    let killed = lasts(ending.killed, ending.gone).map(|at| (at, Action::Kill(d)));
    let gone = ending.gone.map(|at| (at, last));
    [over, killed, gone].into_iter().flatten().map(|(at, action)| TimedAction { at, action })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::host::host_config;
    use vcpulab_host::Span;
    use vcpulab_scenario::Scenario;

    /// The steps of the host under these costs, with their times in ms.
    fn steps(costs: &str, actions: &[(i64, &str)]) -> Vec<(i64, Action)> {
        let mut text = format!(
            "[host]\nscheduler = \"credit\"\nprofile = \"exact\"\ncosts = {{ {costs} }}\n\
             [domain.a]\nmemory = \"4MiB\"\non_crash = \"restart\"\n"
        );
        for (ms, op) in actions {
            text += &format!("[[action]]\nat = \"{ms}ms\"\nop = \"{op}\"\ndomain = \"a\"\n");
        }
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        host_config(&scenario)
            .actions
            .into_iter()
            .map(|step| ((step.at - Time::ZERO) / Span::from_ms(1), step.action))
            .collect()
    }

    const A: DomId = DomId(0);
    /// A second to shut down, a tenth to notice, 1024 pages of 100 us each.
    const COSTS: &str = "shutdown_ns = 1_000_000_000, toolstack_ns = 100_000_000, free_page_ns = 97_657";

    #[test]
    fn where_nothing_takes_time_a_domain_that_ends_is_gone() {
        let all = steps("", &[(1, "shutdown"), (1, "create"), (2, "reboot"), (3, "crash"), (4, "destroy")]);
        let [gone, create, reboot] = [Action::Destroy(A), Action::Create(A), Action::Reboot(A)];
        assert_eq!(all, [(1, gone.clone()), (1, create), (2, reboot.clone()), (3, reboot), (4, gone)]);
    }

    #[test]
    fn ends_take_their_time() {
        let of = |op| steps(COSTS, &[(1000, op)]);
        let [down, crash, kill] = [Action::Shutdown(A), Action::Crash(A), Action::Kill(A)];
        let [gone, again] = [Action::Destroy(A), Action::Reboot(A)];
        assert_eq!(of("shutdown"), [(2000, down.clone()), (2100, kill.clone()), (2200, gone.clone())]);
        assert_eq!(of("reboot"), [(2000, down), (2100, kill.clone()), (2200, again.clone())]);
        assert_eq!(of("crash"), [(1000, crash), (1100, kill.clone()), (1200, again)]);
        assert_eq!(of("destroy"), [(1000, kill), (1100, gone)]);
    }

    #[test]
    fn who_is_destroyed_while_it_shuts_down_is_gone_sooner() {
        let all = steps(COSTS, &[(1000, "reboot"), (1500, "destroy"), (1700, "create")]);
        let [kill, gone, create] = [Action::Kill(A), Action::Destroy(A), Action::Create(A)];
        assert_eq!(all, [(1500, kill), (1600, gone), (1700, create)]);
    }
}
