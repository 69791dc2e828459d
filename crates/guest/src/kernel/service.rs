//! The listening socket of an application: its SYN queue, its backlog, and the requests that wait for a task.

use std::collections::VecDeque;

use super::task::Request;
use crate::ids::{ConnectionId, TaskId};
use crate::script::ServiceConfig;

/// The answer to a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynAnswer {
    /// A SYN-ACK: the set-up of a connection is under way.
    Accepted,
    /// No answer: there is no room, and the caller hears nothing.
    Dropped,
    /// A reset: there is no room for one more connection.
    Refused,
}

/// The service of an application.
#[derive(Clone, Debug)]
pub struct Service {
    config: ServiceConfig,
    /// Connections whose set-up is under way.
    half_open: u32,
    /// Connections served.
    served: u32,
    /// Connections in the backlog, the oldest first.
    backlog: VecDeque<ConnectionId>,
    requests: VecDeque<Request>,
    /// Tasks that wait for a request.
    idle: Vec<TaskId>,
}

impl Service {
    /// A service with this many tasks, without connections.
    pub(super) fn new(config: ServiceConfig, tasks: u32) -> Self {
        Service {
            config,
            half_open: 0,
            served: 0,
            backlog: VecDeque::new(),
            requests: VecDeque::with_capacity(config.connections_max.min(1024) as usize),
            idle: Vec::with_capacity(tasks as usize),
        }
    }

    /// Takes a SYN.
    pub fn syn(&mut self) -> SynAnswer {
        let ServiceConfig { connections_max, backlog, ignores, syn_queue, .. } = self.config;
        let known = self.served + self.half_open + self.backlog.len() as u32;
        if known >= connections_max.saturating_add(backlog) {
            return if ignores { SynAnswer::Dropped } else { SynAnswer::Refused };
        }
        if self.half_open >= syn_queue {
            return SynAnswer::Dropped;
        }
        self.half_open += 1;
        SynAnswer::Accepted
    }

    /// Completes the set-up of a connection. True: it is served; otherwise it is in the backlog.
    pub fn connect(&mut self, connection: ConnectionId) -> bool {
        self.half_open = self.half_open.saturating_sub(1);
        let room = self.served < self.config.connections_max;
        match room {
            true => self.served += 1,
            false => self.backlog.push_back(connection),
        }
        room
    }

    /// Forgets a connection whose set-up was under way.
    pub fn give_up_set_up(&mut self) {
        self.half_open = self.half_open.saturating_sub(1);
    }

    /// Forgets a connection of the backlog.
    pub fn leave_backlog(&mut self, connection: ConnectionId) {
        self.backlog.retain(|&waiting| waiting != connection);
    }

    /// Ends a connection that was served. The one of the backlog that is served instead, if there is one.
    pub fn disconnect(&mut self) -> Option<ConnectionId> {
        let next = self.backlog.pop_front();
        if next.is_none() {
            self.served = self.served.saturating_sub(1);
        }
        next
    }

    /// Connections served now, without those in the backlog.
    pub fn connections(&self) -> u32 {
        self.served
    }

    /// The requests after which a connection is closed; 0: never.
    pub fn requests_max(&self) -> u32 {
        self.config.requests_max
    }

    /// Queues a request, unless a task waits for one: then that task.
    pub(super) fn offer(&mut self, request: Request) -> Option<TaskId> {
        let idle = self.idle.pop();
        if idle.is_none() {
            self.requests.push_back(request);
        }
        idle
    }

    /// The oldest request; without one the task waits for the next.
    pub(super) fn take(&mut self, task: TaskId) -> Option<Request> {
        let request = self.requests.pop_front();
        if request.is_none() {
            self.idle.push(task);
        }
        request
    }
}
