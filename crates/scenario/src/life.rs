//! Who is there when: everything that happens to domains is scripted, so what cannot be done is known before the run.

use vcpulab_host::Time;

use crate::check::NamedDomain;
use crate::problem::{Place, Problem, Report};
use crate::read::At;
use crate::spec::{ActionSpec, Change, DomainSpec, LifeChange};
use crate::units::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    NotYet,
    There,
    ShutDown,
    Destroyed,
    Saved,
}

/// A domain: what it is, since when, and what was done to it in this life.
struct Life {
    state: State,
    since: Time,
    paused_at: Option<Time>,
    /// By vCPU, when it was unplugged.
    unplugged_at: Vec<Option<Time>>,
}

/// The lives of all domains, as far as the actions looked at so far tell.
pub(crate) struct Lives<'s> {
    domains: &'s [DomainSpec],
    /// Where the file says when each is created.
    starts: Vec<Option<&'s Place>>,
    lives: Vec<Life>,
    /// Those that are not there from the beginning, in the order in which they are created, and how many have been.
    later: Vec<usize>,
    begun: usize,
}

impl<'s> Lives<'s> {
    pub fn new(domains: &'s [DomainSpec], raw: &'s [&NamedDomain]) -> Self {
        let life = |domain: &DomainSpec| Life {
            state: if domain.start_ns == 0 { State::There } else { State::NotYet },
            since: 0,
            paused_at: None,
            unplugged_at: vec![None; domain.affinity.len()],
        };
        let place = |(_, raw): &&'s NamedDomain| raw.value.start.0.as_ref().map(|At { place, .. }| place);
        let mut later: Vec<usize> = (0..domains.len()).filter(|&d| domains[d].start_ns > 0).collect();
        later.sort_by_key(|&d| domains[d].start_ns);
        let lives = domains.iter().map(life).collect();
        Lives { domains, starts: raw.iter().map(place).collect(), lives, later, begun: 0 }
    }

    /// Domains with a start up to `end` are created.
    pub fn begin_until(&mut self, end: Time, report: &mut Report<'_>) {
        while let Some(&d) = self.later.get(self.begun)
            && self.domains[d].start_ns <= end
        {
            self.begun += 1;
            let start = self.domains[d].start_ns;
            let problem = self.own_host(d).or_else(|| self.unserved(d, start));
            if let (Some(problem), Some(place)) = (problem, self.starts[d]) {
                report.error(place, problem);
            }
            self.live(d, start);
        }
    }

    /// Carries an action out, if it can be.
    pub fn act(&mut self, action: &ActionSpec, place: &Place, report: &mut Report<'_>) {
        let problem = match action.change {
            Change::AdjustGlobal(..) => None,
            Change::Life(d, change) => self.change(d, change, action.at),
            Change::Plug(d, vcpu, on) => self.plug(d, vcpu as usize, on, action.at),
            Change::Adjust(d, _) | Change::Affinity(d, ..) | Change::MovePool(d, _) => {
                self.absent(d, action.at)
            }
            Change::Pause(d) => self.absent(d, action.at).or_else(|| {
                self.lives[d].paused_at = Some(action.at);
                None
            }),
            // Under some releases pauses nest. Whether this was the last one the host knows.
            Change::Unpause(d) => self.absent(d, action.at).or_else(|| {
                self.lives[d].paused_at = None;
                None
            }),
        };
        if let Some(problem) = problem {
            report.error(place, problem);
        }
    }

    fn change(&mut self, d: usize, change: LifeChange, at: Time) -> Option<Problem> {
        let problem = self.own_host(d).or_else(|| match change {
            LifeChange::Create => self.present(d, at).or_else(|| self.unserved(d, at)),
            LifeChange::Restore => self.unsaved(d, at).or_else(|| self.unserved(d, at)),
            LifeChange::Destroy => self.absent(d, at).or_else(|| self.needed(d, at)),
            LifeChange::Shutdown | LifeChange::Reboot | LifeChange::Save => {
                self.absent(d, at).or_else(|| self.deaf(d)).or_else(|| self.needed(d, at))
            }
        });
        if problem.is_none() {
            match change {
                LifeChange::Create | LifeChange::Reboot => self.live(d, at),
                LifeChange::Shutdown => self.leave(d, State::ShutDown, at),
                LifeChange::Destroy => self.leave(d, State::Destroyed, at),
                LifeChange::Save => self.leave(d, State::Saved, at),
                LifeChange::Restore => (self.lives[d].state, self.lives[d].since) = (State::There, at),
            }
        }
        problem
    }

    fn plug(&mut self, d: usize, vcpu: usize, on: bool, at: Time) -> Option<Problem> {
        let problem = self.absent(d, at).or_else(|| self.deaf(d));
        let name = &self.domains[d].name;
        let unplugged_at = &mut self.lives[d].unplugged_at[vcpu];
        problem.or_else(|| match (*unplugged_at, on) {
            (None, true) => {
                Some(Problem::says(format!("vCPU {vcpu} of `{name}` is on line at {}", Duration(at))))
            }
            (Some(since), false) => {
                let since = Duration(since);
                Some(Problem::says(format!("vCPU {vcpu} of `{name}` is off line since {since}")))
            }
            _ => {
                *unplugged_at = (!on).then_some(at);
                None
            }
        })
    }

    /// A new guest: nothing is left of what was done to the old one.
    fn live(&mut self, d: usize, at: Time) {
        let life = &mut self.lives[d];
        (life.state, life.since, life.paused_at) = (State::There, at, None);
        life.unplugged_at.fill(None);
    }

    fn leave(&mut self, d: usize, state: State, at: Time) {
        let life = &mut self.lives[d];
        (life.state, life.since, life.paused_at) = (state, at, None);
    }

    // ---- what can be in the way ----

    fn own_host(&self, d: usize) -> Option<Problem> {
        let DomainSpec { number, name, .. } = &self.domains[d];
        let message = format!("domain `{name}` is there as long as the host runs: the toolstack runs in it");
        (*number == 0).then(|| Problem::says(message))
    }

    fn present(&self, d: usize, at: Time) -> Option<Problem> {
        let (name, at) = (&self.domains[d].name, Duration(at));
        let Life { state, since, .. } = self.lives[d];
        match state {
            State::There if since == 0 => {
                let problem = Problem::says(format!("domain `{name}` is there from the beginning"));
                Some(problem.hint(format!("`start = \"{at}\"` in [domain.{name}] creates it later")))
            }
            State::There => {
                let since = Duration(since);
                Some(Problem::says(format!("domain `{name}` is there already at {at}, since {since}")))
            }
            State::NotYet => {
                let start = Duration(self.domains[d].start_ns);
                Some(Problem::says(format!("domain `{name}` is created at {start}, which its `start` says")))
            }
            State::Saved => {
                let problem = Problem::says(format!("domain `{name}` is saved since {}", Duration(since)));
                Some(problem.hint("`op = \"restore\"` brings it back"))
            }
            State::ShutDown | State::Destroyed => None,
        }
    }

    fn absent(&self, d: usize, at: Time) -> Option<Problem> {
        let Life { state, since, .. } = self.lives[d];
        let (why, when) = match state {
            State::There => return None,
            State::NotYet => ("it is created at", self.domains[d].start_ns),
            State::ShutDown => ("it was shut down at", since),
            State::Destroyed => ("it was destroyed at", since),
            State::Saved => ("it was saved at", since),
        };
        let (name, at, when) = (&self.domains[d].name, Duration(at), Duration(when));
        Some(Problem::says(format!("domain `{name}` is not there at {at}: {why} {when}")))
    }

    fn unsaved(&self, d: usize, at: Time) -> Option<Problem> {
        let message = format!("domain `{}` is not saved at {}", self.domains[d].name, Duration(at));
        (self.lives[d].state != State::Saved).then(|| Problem::says(message))
    }

    /// A paused guest does nothing, not even what it is asked to.
    fn deaf(&self, d: usize) -> Option<Problem> {
        self.lives[d].paused_at.map(|since| {
            let name = &self.domains[d].name;
            let message =
                format!("domain `{name}` is paused since {}: its guest does not answer", Duration(since));
            Problem::says(message).hint("unpause it before, or destroy it")
        })
    }

    /// Does a domain that is there need this one for its devices?
    fn needed(&self, d: usize, at: Time) -> Option<Problem> {
        let of =
            |other: usize| self.lives[other].state == State::There && self.domains[other].driver() == Some(d);
        let other = &self.domains[(0..self.domains.len()).find(|&other| of(other))?].name;
        let (name, at) = (&self.domains[d].name, Duration(at));
        let problem = Problem::says(format!(
            "domain `{name}` is the driver domain of `{other}`, which is there at {at}"
        ));
        Some(problem.hint(format!("shut `{other}` down before")))
    }

    /// Is the domain that this one needs for its devices missing?
    fn unserved(&self, d: usize, at: Time) -> Option<Problem> {
        let driver = self.domains[d].driver().filter(|&driver| self.lives[driver].state != State::There)?;
        let (name, driver, at) = (&self.domains[d].name, &self.domains[driver].name, Duration(at));
        Some(Problem::says(format!("domain `{driver}`, the driver domain of `{name}`, is not there at {at}")))
    }
}
