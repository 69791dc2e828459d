//! A client outside the host: begins requests at a rate that does not depend on the answers.

use vcpulab_guest::{AppStats, Random};
use vcpulab_host::{NEVER, Time};

use crate::config::ClientConfig;

/// An open loop with a limit on connections.
#[derive(Clone, Debug)]
pub struct Client {
    /// As configured.
    pub config: ClientConfig,
    /// What it has seen: requests answered, and those refused or beyond its limit.
    pub stats: AppStats,
    outstanding: u32,
    next_request: Time,
    random: Random,
}

impl Client {
    /// A client whose first request comes after a random gap.
    pub fn new(config: ClientConfig, random: Random) -> Self {
        let mut client =
            Client { config, stats: AppStats::default(), outstanding: 0, next_request: 0, random };
        client.schedule(0);
        client
    }

    fn schedule(&mut self, now: Time) {
        let silent = self.config.rate_per_s <= 0.0;
        self.next_request =
            if silent { NEVER } else { now.saturating_add(self.random.exponential(self.config.rate_per_s)) };
    }

    /// When it begins its next request.
    pub fn next_request(&self) -> Time {
        self.next_request
    }

    /// That time has come: does it begin one, or is it at its limit?
    pub fn begin(&mut self, now: Time) -> bool {
        self.schedule(now);
        let free = self.outstanding < self.config.connections_max;
        if free {
            self.outstanding += 1;
        } else {
            self.stats.failed += 1;
        }
        free
    }

    /// A request begun at `started` is answered.
    pub fn answered(&mut self, started: Time, now: Time) {
        self.outstanding -= 1;
        self.stats.complete(now - started);
    }

    /// A request is refused.
    pub fn refused(&mut self) {
        self.outstanding -= 1;
        self.stats.failed += 1;
    }
}
