//! The presence of domains over time. Everything that happens to them is scripted, so that impossible actions are known
//! before the run.

use vcpulab_host::{DomId, Table, Time};
use vcpulab_spec::{ActionSpec, Change, Constants, DomainSpec, Ending, LifeChange};

use crate::file::raw::NamedDomain;
use crate::text::problem::{Place, Problem, Report};
use crate::text::read::At;
use crate::text::units::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    NotYet,
    There,
    ShutDown,
    Crashed,
    Destroyed,
    Saved,
}

/// A domain's state, the time since which it is in it, and what has been done to it in this life.
struct Life {
    state: State,
    since: Time,
    /// The end of its present life, if that has begun.
    ending: Option<Ending>,
    paused_at: Option<Time>,
    /// By vCPU, when it went offline.
    offline_since: Vec<Option<Time>>,
}

/// The lives of all domains, as far as the actions looked at so far tell.
pub(crate) struct Lives<'s> {
    domains: &'s Table<DomId, DomainSpec>,
    constants: &'s Constants,
    /// The places in the file of the times at which they are created.
    starts: Table<DomId, Option<&'s Place>>,
    lives: Table<DomId, Life>,
    /// Domains that do not exist from the beginning, in the order of their creation, and the number of those created so far.
    later: Vec<DomId>,
    begun: usize,
    /// Domains whose end has begun.
    ending: Vec<DomId>,
}

impl<'s> Lives<'s> {
    pub fn new(
        domains: &'s Table<DomId, DomainSpec>,
        raw: &'s [&NamedDomain],
        constants: &'s Constants,
    ) -> Self {
        let life = |domain: &DomainSpec| Life {
            state: if domain.start == Time::ZERO { State::There } else { State::NotYet },
            since: Time::ZERO,
            ending: None,
            paused_at: None,
            offline_since: vec![None; domain.affinity.len()],
        };
        let place = |(_, raw): &&'s NamedDomain| raw.value.start.0.as_ref().map(|At { place, .. }| place);
        let mut later: Vec<DomId> = domains.ids().filter(|&d| domains[d].start > Time::ZERO).collect();
        later.sort_by_key(|&d| domains[d].start);
        let lives = domains.iter().map(life).collect();
        let starts = raw.iter().map(place).collect();
        Lives { domains, constants, starts, lives, later, begun: 0, ending: Vec::new() }
    }

    /// Domains with a start up to `end` are created.
    pub fn begin_until(&mut self, end: Time, report: &mut Report<'_>) {
        while let Some(&d) = self.later.get(self.begun)
            && self.domains[d].start <= end
        {
            self.begun += 1;
            let start = self.domains[d].start;
            self.end_until(start);
            let problem = self.own_host(d).or_else(|| self.unserved(d, start));
            if let (Some(problem), Some(place)) = (problem, self.starts[d]) {
                report.error(place, problem);
            }
            self.live(d, start);
        }
    }

    /// Domains whose end comes up to `now` are gone, or back.
    fn end_until(&mut self, now: Time) {
        for d in std::mem::take(&mut self.ending) {
            match self.lives[d].ending {
                Some(Ending { gone: Some(gone), again, over, crashed, .. }) if gone <= now => match again {
                    true => self.live(d, gone),
                    false if crashed => self.leave(d, State::Crashed, gone),
                    false if over.is_some() => self.leave(d, State::ShutDown, gone),
                    false => self.leave(d, State::Destroyed, gone),
                },
                _ => self.ending.push(d),
            }
        }
    }

    /// Carries an action out, if it can be.
    pub fn act(&mut self, action: &ActionSpec, place: &Place, report: &mut Report<'_>) {
        self.end_until(action.at);
        let problem = match action.change {
            Change::AdjustGlobal(..) => None,
            Change::Life(d, change) => self.change(d, change, action.at),
            Change::Online(d, vcpu, online) => self.online(d, vcpu, online, action.at),
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

    fn change(&mut self, d: DomId, change: LifeChange, at: Time) -> Option<Problem> {
        let problem = self.own_host(d).or_else(|| match change {
            LifeChange::Create => self.present(d, at).or_else(|| self.unserved(d, at)),
            LifeChange::Restore => self.unsaved(d, at).or_else(|| self.unserved(d, at)),
            LifeChange::Destroy => self.indestructible(d, at).or_else(|| self.needed(d, at)),
            LifeChange::Shutdown | LifeChange::Reboot | LifeChange::Crash | LifeChange::Save => {
                self.absent(d, at).or_else(|| self.deaf(d)).or_else(|| self.needed(d, at))
            }
        });
        if problem.is_none() {
            match change {
                LifeChange::Create => self.live(d, at),
                LifeChange::Save => self.leave(d, State::Saved, at),
                LifeChange::Restore => (self.lives[d].state, self.lives[d].since) = (State::There, at),
                LifeChange::Destroy if self.lives[d].state == State::Saved => {
                    self.leave(d, State::Destroyed, at);
                }
                LifeChange::Shutdown | LifeChange::Reboot | LifeChange::Crash | LifeChange::Destroy => {
                    let ending = Ending::of(&self.domains[d], self.constants, change, at);
                    if std::mem::replace(&mut self.lives[d].ending, ending).is_none() {
                        self.ending.push(d);
                    }
                    self.end_until(at);
                }
            }
        }
        problem
    }

    fn online(&mut self, d: DomId, vcpu: u32, online: bool, at: Time) -> Option<Problem> {
        let problem = self.absent(d, at).or_else(|| self.deaf(d));
        let name = &self.domains[d].name;
        let offline_since = &mut self.lives[d].offline_since[vcpu as usize];
        problem.or_else(|| match (*offline_since, online) {
            (None, true) => {
                Some(Problem::says(format!("vCPU {vcpu} of `{name}` is online at {}", Duration::from(at))))
            }
            (Some(since), false) => {
                let since = Duration::from(since);
                Some(Problem::says(format!("vCPU {vcpu} of `{name}` is offline since {since}")))
            }
            _ => {
                *offline_since = (!online).then_some(at);
                None
            }
        })
    }

    /// A new guest: nothing is left of what was done to the old one.
    fn live(&mut self, d: DomId, at: Time) {
        let life = &mut self.lives[d];
        (life.state, life.since, life.paused_at, life.ending) = (State::There, at, None, None);
        life.offline_since.fill(None);
    }

    fn leave(&mut self, d: DomId, state: State, at: Time) {
        let life = &mut self.lives[d];
        (life.state, life.since, life.paused_at, life.ending) = (state, at, None, None);
    }

    // ---- what can be in the way ----

    fn own_host(&self, d: DomId) -> Option<Problem> {
        let DomainSpec { number, name, .. } = &self.domains[d];
        let message = format!("domain `{name}` is there as long as the host runs: the toolstack runs in it");
        (*number == 0).then(|| Problem::says(message))
    }

    fn present(&self, d: DomId, at: Time) -> Option<Problem> {
        let ends = self.ends(d, at);
        let (name, at) = (&self.domains[d].name, Duration::from(at));
        let Life { state, since, .. } = self.lives[d];
        match state {
            State::There if ends.is_some() => ends,
            State::There if since == Time::ZERO => {
                let problem = Problem::says(format!("domain `{name}` is there from the beginning"));
                Some(problem.hint(format!("`start = \"{at}\"` in [domain.{name}] creates it later")))
            }
            State::There => {
                let since = Duration::from(since);
                Some(Problem::says(format!("domain `{name}` is there already at {at}, since {since}")))
            }
            State::NotYet => {
                let start = Duration::from(self.domains[d].start);
                Some(Problem::says(format!("domain `{name}` is created at {start}, which its `start` says")))
            }
            State::Saved => {
                let problem =
                    Problem::says(format!("domain `{name}` is saved since {}", Duration::from(since)));
                Some(problem.hint("`op = \"restore\"` brings it back"))
            }
            State::ShutDown | State::Crashed | State::Destroyed => None,
        }
    }

    fn absent(&self, d: DomId, at: Time) -> Option<Problem> {
        let Life { state, since, .. } = self.lives[d];
        let (why, when) = match state {
            State::There => return self.ends(d, at),
            State::NotYet => ("it is created at", self.domains[d].start),
            State::ShutDown => ("it was shut down at", since),
            State::Crashed => ("it crashed and was destroyed at", since),
            State::Destroyed => ("it was destroyed at", since),
            State::Saved => ("it was saved at", since),
        };
        let (name, at, when) = (&self.domains[d].name, Duration::from(at), Duration::from(when));
        Some(Problem::says(format!("domain `{name}` is not there at {at}: {why} {when}")))
    }

    /// The problem of an action on a domain whose end has begun at this time; `None`: it has not.
    fn ends(&self, d: DomId, at: Time) -> Option<Problem> {
        let Ending { begins, over, killed, gone, crashed, again } = self.lives[d].ending?;
        let past = |time: Option<Time>| time.is_some_and(|time| time <= at);
        let what = match crashed {
            _ if past(killed) => "is being destroyed",
            true => "has crashed",
            false if past(over) => "has shut down",
            false => "is shutting down",
        };
        let then = match gone {
            None => "it stays so until it is destroyed".to_owned(),
            Some(gone) if again => format!("it is back at {}", Duration::from(gone)),
            Some(gone) => format!("it is gone at {}", Duration::from(gone)),
        };
        let (name, at, begins) = (&self.domains[d].name, Duration::from(at), Duration::from(begins));
        Some(Problem::says(format!("domain `{name}` {what} at {at}, since {begins}: {then}")))
    }

    /// The problem of destroying a domain that does not exist at this time. A domain that is shutting down, has
    /// crashed, or is saved can be destroyed.
    fn indestructible(&self, d: DomId, at: Time) -> Option<Problem> {
        let Life { state, ending, .. } = &self.lives[d];
        let killed = ending.and_then(|ending| ending.killed);
        match state {
            State::Saved => None,
            State::There if killed.is_none_or(|killed| at < killed) => None,
            _ => self.absent(d, at),
        }
    }

    /// Whether the guest of a domain is alive at this time.
    fn alive(&self, d: DomId, at: Time) -> bool {
        let Life { state, ending, .. } = &self.lives[d];
        let over = ending.and_then(|ending| ending.over.or(ending.killed));
        *state == State::There && over.is_none_or(|over| at < over)
    }

    fn unsaved(&self, d: DomId, at: Time) -> Option<Problem> {
        let message = format!("domain `{}` is not saved at {}", self.domains[d].name, Duration::from(at));
        (self.lives[d].state != State::Saved).then(|| Problem::says(message))
    }

    /// A paused guest does nothing, not even what it is asked to.
    fn deaf(&self, d: DomId) -> Option<Problem> {
        self.lives[d].paused_at.map(|since| {
            let name = &self.domains[d].name;
            let message = format!(
                "domain `{name}` is paused since {}: its guest does not answer",
                Duration::from(since)
            );
            Problem::says(message).hint("unpause it before, or destroy it")
        })
    }

    /// The problem of ending a domain that another one needs for its devices.
    fn needed(&self, d: DomId, at: Time) -> Option<Problem> {
        let of =
            |other: DomId| self.alive(other, at) && self.domains[other].drivers().any(|driver| driver == d);
        let other = &self.domains[self.domains.ids().find(|&other| of(other))?].name;
        let (name, at) = (&self.domains[d].name, Duration::from(at));
        let problem = Problem::says(format!(
            "domain `{name}` is the driver domain of `{other}`, which is there at {at}"
        ));
        Some(problem.hint(format!("shut `{other}` down before")))
    }

    /// The problem of a domain whose driver domain is missing.
    fn unserved(&self, d: DomId, at: Time) -> Option<Problem> {
        let driver = self.domains[d]
            .drivers()
            .find(|&driver| !self.alive(driver, at) || self.lives[driver].ending.is_some())?;
        let (name, driver, at) = (&self.domains[d].name, &self.domains[driver].name, Duration::from(at));
        Some(Problem::says(format!("domain `{driver}`, the driver domain of `{name}`, is not there at {at}")))
    }
}
