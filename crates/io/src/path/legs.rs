//! The paths of single requests: for each one that is followed the legs of its critical path, one after the other without a
//! gap, from its begin to its answer.
//!
//! A packet carries the leg that it is on. What is sent because a packet has come, or because the task that serves a request
//! continues, begins its leg where that one ends. So the legs behind the last packet of an answer, followed back to the begin of
//! the request, are all that it waited for: what went on beside them is on none of them.

use std::collections::BTreeMap;

use vcpulab_guest::{AppId, ConnectionId, Request};
use vcpulab_host::{Table, Time, VcpuId};

use crate::ids::{ClientId, GuestId, LegId, NicId};
use crate::network::client::Asking;
use crate::network::tcp::Packet;

/// The place where a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the client: the request waits for the client's machine, or is processed there.
    Client,
    /// A try that was refused or given up, as a whole.
    FailedTry,
    /// On the link of a NIC, to the host.
    LinkIn(NicId),
    /// On the link of a NIC, from the host.
    LinkOut(NicId),
    /// In the queue of a NIC.
    Nic(NicId),
    /// A driver domain works at its packet.
    Netback,
    /// In the queue of another of its netback threads.
    Thread,
    /// In a ring, on its way to a guest.
    RingIn,
    /// The guest's netfront and network stack take its packet.
    Receive,
    /// The request's connection is in the backlog of the service.
    Backlog(GuestId),
    /// No task of the service is free.
    Service(GuestId),
    /// The request's task waits for its turn in the guest.
    Ready,
    /// The request's task computes.
    Task,
    /// The request's task spins for a lock.
    Spin,
    /// The request's task waits for a lock, or for another task.
    Lock(GuestId),
    /// The request's task sleeps.
    Sleep(GuestId),
    /// The request's task waits for an event of another domain.
    Event(GuestId),
    /// The request's task waits for another service.
    Call(GuestId),
    /// The request's task waits for the disk.
    Disk(GuestId),
    /// In a queue of the guest's netfront: it is to be sent.
    SendQueue,
    /// The guest's network stack and netfront send it.
    Send,
    /// In a ring, on its way to a driver domain.
    RingOut,
    /// Between two tasks of a guest.
    Loopback,
    /// The request's packet was lost; it is sent again after a timeout.
    Lost,
    /// TCP waits with an acknowledgement.
    DelayedAck,
}

impl Place {
    /// Name of the place in tables.
    pub fn name(self) -> &'static str {
        match self {
            Place::Client => "client",
            Place::FailedTry => "failed-try",
            Place::LinkIn(_) => "link-in",
            Place::LinkOut(_) => "link-out",
            Place::Nic(_) => "nic",
            Place::Netback => "netback",
            Place::Thread => "thread",
            Place::RingIn => "ring-in",
            Place::Receive => "receive",
            Place::Backlog(_) => "backlog",
            Place::Service(_) => "service",
            Place::Ready => "ready",
            Place::Task => "task",
            Place::Spin => "spin",
            Place::Lock(_) => "lock",
            Place::Sleep(_) => "sleep",
            Place::Event(_) => "event",
            Place::Call(_) => "call",
            Place::Disk(_) => "disk",
            Place::SendQueue => "send-queue",
            Place::Send => "send",
            Place::RingOut => "ring-out",
            Place::Loopback => "loopback",
            Place::Lost => "lost",
            Place::DelayedAck => "delayed-ack",
        }
    }

    /// The NIC that it is at.
    pub fn nic(self) -> Option<NicId> {
        match self {
            Place::LinkIn(nic) | Place::LinkOut(nic) | Place::Nic(nic) => Some(nic),
            _ => None,
        }
    }

    /// The guest that it is in, if what it waits for there is not a vCPU.
    pub fn guest(self) -> Option<GuestId> {
        match self {
            Place::Backlog(guest) | Place::Service(guest) | Place::Lock(guest) | Place::Sleep(guest) => {
                Some(guest)
            }
            Place::Event(guest) | Place::Call(guest) | Place::Disk(guest) => Some(guest),
            _ => None,
        }
    }

    /// Whether a request in this place waits for the vCPU that works on the leg after it.
    fn waits_for_next(self) -> bool {
        use Place::{Loopback, Nic, RingIn, RingOut, SendQueue, Service, Thread};
        matches!(self, Nic(_) | Thread | RingIn | Service(_) | SendQueue | RingOut | Loopback)
    }
}

/// A request to follow: that of a user of a client, begun at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed {
    /// The client.
    pub client: ClientId,
    /// The user.
    pub user: u32,
    /// The time of its begin.
    pub begun: Time,
}

/// A leg of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leg {
    /// The place.
    pub place: Place,
    /// Start of the leg; it ends where the next leg begins.
    pub begins: Time,
    /// The vCPU that works there, or that has to.
    pub vcpu: Option<VcpuId>,
    /// The vCPU that tells it of its work: that of the leg before, if it is in a ring.
    pub notifier: Option<VcpuId>,
    after: Option<LegId>,
}

/// A request that is being followed.
#[derive(Debug)]
struct Following {
    request: Followed,
    leg: Option<LegId>,
    path: Vec<Leg>,
}

/// A request at the service that it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub guest: GuestId,
    pub app: AppId,
    pub leg: LegId,
    /// `None`: its connection is in the backlog.
    pub request: Option<Request>,
    /// Place of the request once its task waits.
    pub waits_for: Place,
}

/// The requests that are followed, and their legs so far.
#[derive(Debug)]
pub(crate) struct Paths {
    legs: Table<LegId, Leg>,
    /// The leg from which everything follows that is done now.
    pub cause: Option<LegId>,
    requests: Vec<Following>,
    /// By connection: the leg of what its ends wait for.
    waiting: BTreeMap<ConnectionId, LegId>,
    /// By connection: the request that is with its service.
    pub served: BTreeMap<ConnectionId, Served>,
}

impl Paths {
    /// The paths of these requests, of which none has begun.
    pub fn new(requests: &[Followed]) -> Self {
        let following = |&request| Following { request, leg: None, path: Vec::new() };
        Paths {
            legs: Table::new(),
            cause: None,
            requests: requests.iter().map(following).collect(),
            waiting: BTreeMap::new(),
            served: BTreeMap::new(),
        }
    }

    /// Begins a leg after another one.
    #[cold]
    pub fn begin(&mut self, after: LegId, place: Place, now: Time, vcpu: Option<VcpuId>) -> LegId {
        let notifier = if place == Place::RingIn { self.legs[after].vcpu } else { None };
        self.legs.push(Leg { place, begins: now, vcpu, notifier, after: Some(after) })
    }

    /// The place of a leg, and the vCPU that works there.
    pub fn at(&self, leg: LegId) -> (Place, Option<VcpuId>) {
        (self.legs[leg].place, self.legs[leg].vcpu)
    }

    fn following(&mut self, client: ClientId, user: u32, begun: Time) -> Option<&mut Following> {
        let request = Followed { client, user, begun };
        self.requests.iter_mut().find(|one| one.request == request)
    }

    /// A user begins a request, or tries again.
    #[cold]
    pub fn asked(&mut self, client: ClientId, asking: &Asking, now: Time) {
        let Some(one) = self.following(client, asking.user, asking.begun) else { return };
        let after = one.leg;
        if let Some(failed) = after {
            self.legs[failed].place = Place::FailedTry;
        }
        let leg =
            self.legs.push(Leg { place: Place::Client, begins: now, vcpu: None, notifier: None, after });
        if let Some(followed) = self.following(client, asking.user, asking.begun) {
            followed.leg = Some(leg);
        }
    }

    /// The leg of a request that a user sends now.
    #[cold]
    pub fn of_user(&mut self, client: ClientId, asking: &Asking) -> Option<LegId> {
        self.following(client, asking.user, asking.begun).and_then(|followed| followed.leg)
    }

    /// The leg from which a packet that is sent now follows: its own if it was lost, or else what is done now, or what
    /// its connection has waited for.
    #[cold]
    pub fn cause_of(&self, packet: &Packet) -> Option<LegId> {
        packet.leg.or(self.cause).or_else(|| self.waiting.get(&packet.connection).copied())
    }

    /// The ends of a connection wait for something.
    #[cold]
    pub fn wait(&mut self, id: ConnectionId, place: Place, now: Time) {
        if let Some(cause) = self.cause {
            let leg = self.begin(cause, place, now, None);
            self.waiting.insert(id, leg);
        }
    }

    /// A request has come to its service: into the backlog, or (`request`) to its tasks.
    #[cold]
    pub fn reached(
        &mut self,
        id: ConnectionId,
        guest: GuestId,
        app: AppId,
        request: Option<Request>,
        now: Time,
    ) {
        let served = self.served.get(&id).map(|served| served.leg);
        let Some(after) = served.or(self.cause) else { return };
        let place = if request.is_some() { Place::Service(guest) } else { Place::Backlog(guest) };
        let leg = self.begin(after, place, now, None);
        self.served.insert(id, Served { guest, app, leg, request, waits_for: Place::Lock(guest) });
    }

    /// The request with its service that a task has taken, if it is followed.
    #[cold]
    pub fn served_by(&mut self, taken: Option<Request>) -> Option<&mut Served> {
        let served = self.served.get_mut(&taken?.connection)?;
        if served.request == taken { Some(served) } else { None }
    }

    /// The answer to a request is complete.
    #[cold]
    pub fn answered(&mut self, id: ConnectionId, client: ClientId, user: u32, begun: Time) {
        let request = Followed { client, user, begun };
        if self.following(client, user, begun).is_none() {
            return;
        }
        let mut path = Vec::new();
        let mut next = self.cause;
        while let Some(leg) = next {
            path.push(self.legs[leg]);
            next = self.legs[leg].after;
        }
        path.reverse();
        for i in (1..path.len()).rev() {
            if path[i - 1].place.waits_for_next() {
                path[i - 1].vcpu = path[i].vcpu;
            }
        }
        // One request may have been asked for twice: few were answered, and it is at both quantiles.
        for one in self.requests.iter_mut().filter(|one| one.request == request) {
            one.path.clone_from(&path);
        }
        self.waiting.remove(&id);
    }

    /// The path of each request, in the order in which they were given; empty if its answer has not come. It ends with the answer.
    pub fn all(&self) -> Vec<Vec<Leg>> {
        self.requests.iter().map(|one| one.path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;

    #[test]
    fn a_path_is_what_the_answer_waited_for_and_nothing_beside_it() {
        let asking = Asking {
            user: 3,
            ask: crate::Ask { class: 0, request_bytes: 1, reply_bytes: 1, weight: 1 },
            begun: NOW,
        };
        let mut paths = Paths::new(&[Followed { client: ClientId(1), user: 3, begun: NOW }]);
        paths.asked(ClientId(0), &asking, NOW);
        assert_eq!(paths.of_user(ClientId(1), &asking), None, "another client's user");
        paths.asked(ClientId(1), &asking, NOW);
        paths.asked(ClientId(1), &asking, Time::from_ns(10));
        let sent = paths.of_user(ClientId(1), &asking).unwrap();
        let queued = paths.begin(sent, Place::Nic(NicId(0)), Time::from_ns(20), None);
        _ = paths.begin(queued, Place::Netback, Time::from_ns(25), Some(VcpuId(8)));
        let taken = paths.begin(queued, Place::Netback, Time::from_ns(30), Some(VcpuId(7)));
        paths.cause = Some(paths.begin(taken, Place::RingIn, Time::from_ns(31), None));
        paths.answered(ConnectionId(1), ClientId(1), 3, NOW);
        let path: Vec<_> =
            paths.all()[0].iter().map(|leg| (leg.place, leg.begins.ns(), leg.vcpu, leg.notifier)).collect();
        assert_eq!(
            path,
            [
                (Place::FailedTry, 0, None, None),
                (Place::Client, 10, None, None),
                (Place::Nic(NicId(0)), 20, Some(VcpuId(7)), None),
                (Place::Netback, 30, Some(VcpuId(7)), None),
                (Place::RingIn, 31, None, Some(VcpuId(7))),
            ]
        );
    }
}
