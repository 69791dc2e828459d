//! A client outside the host: its users, the times of their requests, and the answers as they see them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use vcpulab_guest::{AppStats, ConnectionId, Random, ServiceId};
use vcpulab_host::{NEVER, Span, Time};

use crate::ids::{ClientId, ClientMachineId};

/// A client outside, as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    /// The machine that it runs on; `None`: one that limits nothing.
    pub machine: Option<ClientMachineId>,
    /// The service that it asks.
    pub service: ServiceId,
    /// The times of its requests.
    pub load: Load,
    /// The requests among which it draws.
    pub mix: Vec<Ask>,
    /// Most requests outstanding; one on top fails at once.
    pub connections_max: u32,
    /// Whether a user keeps its connection from one request to the next.
    pub keep_alive: bool,
    /// Time from the request without an answer after which it gives up, ns.
    pub timeout_ns: Option<Span>,
    /// Further tries after that, or after a refusal, before the request counts as failed.
    pub retries: u32,
}

/// The times of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Load {
    /// At a rate per second that does not depend on the answers, at random (a Poisson process) or regularly.
    Open { rate_per_s: f64, regular: bool },
    /// Users of which each asks, waits for the answer, thinks (for a random time, exponentially distributed with this mean,
    /// ns) and asks again. They begin one after the other within the ramp-up time, ns.
    Closed { users: u32, think_ns: Span, ramp_up_ns: Span },
    /// Streams of packets of this size, bytes, each at least `gap_ns` after the one before.
    Stream { streams: u32, packet_bytes: u32, gap_ns: Span },
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Class of the request.
    pub class: u32,
    /// Size of the request, bytes.
    pub request_bytes: u32,
    /// Size of the answer, bytes.
    pub reply_bytes: u32,
    /// Frequency relative to the client's other requests.
    pub weight: u32,
}

/// A client and its users. In an open loop there is one user, which never waits for an answer.
#[derive(Clone, Debug)]
pub struct Client {
    /// Configuration of the client.
    pub config: ClientConfig,
    /// Requests answered, and those refused, given up or beyond its limit.
    pub stats: AppStats,
    /// The connection that each user of a closed loop keeps.
    kept: Vec<Option<ConnectionId>>,
    /// The connection of each stream.
    streams: Vec<Option<ConnectionId>>,
    /// Requests that are given up at a time, each with its connection and its begin, in the order of time.
    timeouts: VecDeque<(Time, ConnectionId, Time)>,
    outstanding: u32,
    /// The next act of each user.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// Tries so far of the request at hand of each user; `None`: the user has not begun.
    tries: Vec<Option<u32>>,
    /// Number of users that have begun.
    begun: u32,
    weight: u64,
    random: Random,
}

/// Least time until a user without a connection to ask with asks again, ns: time must advance.
const TURNED_AWAY_FOR: Span = Span::from_ms(1);

/// A request that a user makes, the same however often it is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asking {
    /// The user.
    pub user: u32,
    /// The request.
    pub ask: Ask,
    /// Start of the request, from which response times count.
    pub begun: Time,
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The service answered.
    Answered,
    /// The service had no room for the connection.
    Refused,
    /// No answer came in time.
    TimedOut,
    /// The connection broke: the service's domain went away.
    Reset,
    /// The client, or its machine, had no connection left.
    NoConnection,
}

/// A request that is over, as a load generator would log it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientSample {
    /// Client of the request.
    pub client: ClientId,
    /// User who made the request.
    pub user: u32,
    /// Class of the request.
    pub class: u32,
    /// Start of the request; all tries are part of it.
    pub begun: Time,
    /// End of the request.
    pub ended: Time,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// From the beginning until there was a connection, ns; 0: there was one already.
    pub connect_ns: Span,
    /// From the beginning until the first data of the answer was there, ns; 0: none came.
    pub latency_ns: Span,
    /// Size of the request sent, bytes.
    pub sent_bytes: u32,
    /// Size of the answer, bytes; 0: it was not complete.
    pub received_bytes: u32,
    /// Users of the client that are active at the end: those that have begun, or, in an open loop, wait for an answer.
    pub active: u32,
    /// Active users of all clients on the client's machine.
    pub active_all: u32,
}

/// The consequence of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failed {
    /// Try again.
    Retry,
    /// Leave it.
    GiveUp,
}

impl Client {
    /// A client at time 0.
    pub fn new(config: ClientConfig, mut random: Random) -> Self {
        let users = match config.load {
            Load::Open { .. } => 1,
            Load::Closed { users, .. } => users,
            Load::Stream { streams, .. } => streams,
        };
        let mut due = BinaryHeap::with_capacity(users as usize + 1);
        for user in 0..users {
            let begins = match config.load {
                Load::Open { rate_per_s, regular } => {
                    next_arrival(Time::ZERO, rate_per_s, regular, &mut random)
                }
                Load::Closed { ramp_up_ns, think_ns, .. } => {
                    let ramp = i128::from(ramp_up_ns.ns()) * i128::from(user) / i128::from(users.max(1));
                    // Users that begin at once are not in step all the same.
                    let apart = random.below(think_ns.max(Span::from_ms(1)).ns() as u64);
                    Time::from_ns(ramp as i64 + apart as i64)
                }
                Load::Stream { .. } => Time::from_ns(random.below(1_000_000) as i64),
            };
            due.push(Reverse((begins, user)));
        }
        let tries = match config.load {
            Load::Open { .. } => Vec::new(),
            _ => vec![None; users as usize],
        };
        let weight = config.mix.iter().map(|ask| u64::from(ask.weight)).sum();
        let (kept, streams) = match config.load {
            Load::Open { .. } => (0, 0),
            Load::Closed { .. } => (users as usize, 0),
            Load::Stream { .. } => (0, users as usize),
        };
        Client {
            config,
            stats: AppStats::default(),
            kept: vec![None; kept],
            streams: vec![None; streams],
            timeouts: VecDeque::new(),
            outstanding: 0,
            due,
            tries,
            begun: 0,
            weight,
            random,
        }
    }

    /// The next act of a user.
    pub fn next_event(&self) -> Time {
        self.due.peek().map_or(NEVER, |&Reverse((time, _))| time)
    }

    /// A user that acts now, if that time has come.
    pub fn take_due(&mut self, now: Time) -> Option<u32> {
        let &Reverse((time, user)) = self.due.peek()?;
        if time > now {
            return None;
        }
        self.due.pop();
        if let Load::Open { rate_per_s, regular } = self.config.load {
            let next = next_arrival(now, rate_per_s, regular, &mut self.random);
            self.due.push(Reverse((next, user)));
        }
        if let Some(tries) = self.tries.get_mut(user as usize) {
            self.begun += u32::from(tries.is_none());
            tries.get_or_insert(0);
        }
        Some(user)
    }

    /// Lets a user act again at that time.
    pub fn set_due(&mut self, user: u32, at: Time) {
        self.due.push(Reverse((at, user)));
    }

    /// Draws the request of a user, unless the client is at its limit.
    pub fn ask(&mut self) -> Option<Ask> {
        if self.outstanding >= self.config.connections_max {
            self.stats.failed += 1;
            return None;
        }
        self.outstanding += 1;
        Some(self.draw())
    }

    /// Number of active users: those that have begun, or, in an open loop, wait for an answer.
    pub fn active(&self) -> u32 {
        match self.config.load {
            Load::Open { .. } => self.outstanding,
            Load::Closed { .. } | Load::Stream { .. } => self.begun,
        }
    }

    /// Draws a request.
    fn draw(&mut self) -> Ask {
        let mix = &self.config.mix;
        if mix.len() == 1 {
            return mix[0];
        }
        let mut left = self.random.below(self.weight.max(1));
        let drawn = mix.iter().find(|ask| {
            let weight = u64::from(ask.weight);
            let found = left < weight;
            left = left.saturating_sub(weight);
            found
        });
        *drawn.unwrap_or(&mix[0])
    }

    /// Counts a request of a user that is answered `response` after its begin, and lets the user think.
    pub fn answered(&mut self, user: u32, response: Span, now: Time) {
        self.outstanding -= 1;
        self.stats.complete(response, now);
        self.next_turn(user, now);
    }

    /// Counts a try of a user that was refused, or not answered in time, and says what follows.
    pub fn failed(&mut self, user: u32, now: Time) -> Failed {
        if let Some(Some(tries)) = self.tries.get_mut(user as usize)
            && *tries < self.config.retries
        {
            *tries += 1;
            return Failed::Retry;
        }
        // A stream that is refused had asked for nothing yet.
        self.outstanding = self.outstanding.saturating_sub(1);
        self.stats.failed += 1;
        self.next_turn(user, now);
        Failed::GiveUp
    }

    /// Counts a request for which the user's machine had no connection.
    pub fn turned_away(&mut self, user: u32, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.stats.failed += 1;
        self.next_turn(user, now.saturating_add(TURNED_AWAY_FOR));
    }

    /// Gives a user a connection to keep. (In an open loop none is kept.)
    pub fn keep(&mut self, user: u32, id: ConnectionId) {
        if let Some(kept) = self.kept.get_mut(user as usize) {
            *kept = Some(id);
        }
    }

    /// Takes the connection that a user keeps, if it keeps one.
    pub fn take_kept(&mut self, user: u32) -> Option<ConnectionId> {
        self.kept.get_mut(user as usize)?.take()
    }

    /// The connection of a stream, if it has one.
    pub fn stream(&self, user: u32) -> Option<ConnectionId> {
        self.streams.get(user as usize).copied().flatten()
    }

    /// Gives a stream its connection.
    pub fn set_stream(&mut self, user: u32, id: ConnectionId) {
        self.streams[user as usize] = Some(id);
    }

    /// Notes that the request over a connection, begun at `begun`, is given up at `at`, which is no earlier than others'. True:
    /// it is the only one.
    pub fn time_out_at(&mut self, at: Time, id: ConnectionId, begun: Time) -> bool {
        self.timeouts.push_back((at, id, begun));
        self.timeouts.len() == 1
    }

    /// The time of the next time-out (`NEVER`: none is set).
    pub fn next_timeout(&self) -> Time {
        self.timeouts.front().map_or(NEVER, |&(time, ..)| time)
    }

    /// Removes a time-out that is due: a connection, and the begin of the request over it.
    pub fn take_timeout(&mut self, now: Time) -> Option<(ConnectionId, Time)> {
        let &(_, id, begun) = self.timeouts.front().filter(|&&(time, ..)| time <= now)?;
        self.timeouts.pop_front();
        Some((id, begun))
    }

    fn next_turn(&mut self, user: u32, now: Time) {
        if let Load::Closed { think_ns, .. } = self.config.load {
            self.tries[user as usize] = Some(0);
            let think = match think_ns {
                Span::ZERO => Span::ZERO,
                mean => self.random.exponential(1e9 / mean.ns() as f64),
            };
            self.set_due(user, now.saturating_add(think));
        }
    }
}

/// Time of the next request of an open loop.
fn next_arrival(now: Time, rate_per_s: f64, regular: bool, random: &mut Random) -> Time {
    if rate_per_s <= 0.0 {
        return NEVER;
    }
    let regular = regular.then(|| Span::from_ns((1e9 / rate_per_s) as i64));
    now.saturating_add(regular.unwrap_or_else(|| random.exponential(rate_per_s)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(load: Load, mix: Vec<Ask>) -> Client {
        let config = ClientConfig {
            machine: None,
            service: ServiceId(0),
            load,
            mix,
            connections_max: 3,
            keep_alive: false,
            timeout_ns: None,
            retries: 1,
        };
        Client::new(config, Random::new(1, 0, 0))
    }

    fn ask(class: u32, weight: u32) -> Ask {
        Ask { class, request_bytes: 300, reply_bytes: 1000, weight }
    }

    #[test]
    fn an_open_loop_goes_on_whatever_the_answers_up_to_its_limit() {
        let mut client = client(Load::Open { rate_per_s: 1000.0, regular: true }, vec![ask(0, 1)]);
        for i in 1..=5 {
            assert_eq!(client.next_event(), Time::from_ns(i * 1_000_000));
            assert_eq!(client.take_due(Time::from_ns(i * 1_000_000)), Some(0));
            assert_eq!(client.ask().is_some(), i <= 3);
        }
        assert_eq!(client.stats.failed, 2);
    }

    #[test]
    fn users_of_a_closed_loop_wait_for_their_answers_and_try_again_once() {
        let load = Load::Closed { users: 2, think_ns: Span::ZERO, ramp_up_ns: Span::from_ns(10_000_000) };
        let mut client = client(load, vec![ask(0, 1)]);
        let first = client.next_event();
        assert_eq!((client.take_due(first), client.active()), (Some(0), 1));
        assert!(client.ask().is_some());
        let second = client.next_event();
        assert!(second >= Time::from_ns(5_000_000), "the ramp-up");
        assert_eq!(client.take_due(second), Some(1));
        assert_eq!(client.next_event(), NEVER, "both wait");
        assert_eq!(client.failed(0, Time::from_ns(7)), Failed::Retry);
        assert_eq!(client.failed(0, Time::from_ns(8)), Failed::GiveUp);
        assert_eq!((client.next_event(), client.stats.failed), (Time::from_ns(8), 1));
        client.turned_away(1, Time::from_ns(9));
        assert_eq!(client.take_due(Time::from_ns(8)), Some(0));
        assert_eq!(client.next_event(), Time::from_ns(9) + TURNED_AWAY_FOR, "even without a time to think");
    }

    #[test]
    fn what_is_asked_for_follows_the_weights() {
        let mut client = client(
            Load::Closed { users: 1, think_ns: Span::ZERO, ramp_up_ns: Span::ZERO },
            vec![ask(0, 1), ask(1, 3)],
        );
        let drawn = (0..10_000).filter(|_| client.draw().class == 1).count();
        assert!((7300..7700).contains(&drawn), "{drawn}");
    }
}
