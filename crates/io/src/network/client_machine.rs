//! A machine outside that clients run on: its link, its processors, and the connections that it can have.
//!
//! A request first waits for a processor, as a thread of a load generator does; packets cross the machine's own
//! link, and may take a processor each, before the switch has them and after.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use vcpulab_host::{NEVER, Span, Time};

use super::client::Asking;
use super::link::Link;
use super::packets::Packets;
use crate::ids::{ClientId, PacketId};

/// A machine outside that clients run on, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientMachineConfig {
    /// Rate of its own link in each direction; `None`: packets take no time there.
    pub bits_per_s: Option<i64>,
    /// Processors of the machine, at least 1.
    pub processors: u32,
    /// Time of a processor for a request before it is sent, ns.
    pub request_ns: Span,
    /// Time of a processor for each packet, sent or received, ns.
    pub packet_ns: Span,
    /// Most connections of all its clients at once: one on top fails at once.
    pub connections_max: u32,
}

impl Default for ClientMachineConfig {
    /// A machine that limits nothing.
    fn default() -> Self {
        ClientMachineConfig {
            bits_per_s: None,
            processors: 1,
            request_ns: Span::ZERO,
            packet_ns: Span::ZERO,
            connections_max: u32::MAX,
        }
    }
}

/// A job of one of the machine's processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// A user of that client makes a request.
    Ask(ClientId, Asking),
    /// A packet is sent.
    Send(PacketId),
    /// A packet has come.
    Take(PacketId),
}

/// A client machine.
#[derive(Clone, Debug)]
pub(crate) struct ClientMachine {
    /// Configuration of the machine.
    pub config: ClientMachineConfig,
    /// Links of the machine, to and from the switch. Without links packets take no time.
    link: Option<[Link; 2]>,
    /// The time from which each processor is free again.
    free_at: BinaryHeap<Reverse<Time>>,
    /// Jobs at work or waiting, by the time at which they will be done, and then in the order of their arrival.
    jobs: BTreeMap<(Time, u64), Job>,
    jobs_so_far: u64,
}

impl ClientMachine {
    /// An idle machine.
    pub fn new(config: ClientMachineConfig) -> Self {
        ClientMachine {
            config,
            link: config.bits_per_s.map(|rate| [Link::new(rate, Span::ZERO), Link::new(rate, Span::ZERO)]),
            free_at: (0..config.processors.max(1)).map(|_| Reverse(Time::ZERO)).collect(),
            jobs: BTreeMap::new(),
            jobs_so_far: 0,
        }
    }

    /// Takes a job. First come, first served: so its end is known at once.
    pub fn begin(&mut self, now: Time, job: Job) {
        let cost = match job {
            Job::Ask(..) => self.config.request_ns,
            Job::Send(_) | Job::Take(_) => self.config.packet_ns,
        };
        let done = if cost.is_zero() { now } else { self.occupy(now, cost) };
        self.jobs.insert((done, self.jobs_so_far), job);
        self.jobs_so_far += 1;
    }

    /// Occupies the processor that is free first for `cost`; returns the time at which it is free again.
    fn occupy(&mut self, now: Time, cost: Span) -> Time {
        let Reverse(free_at) = self.free_at.pop().expect("a machine has a processor");
        let done = free_at.max(now).saturating_add(cost);
        self.free_at.push(Reverse(done));
        done
    }

    /// Takes a packet from the switch.
    pub fn receive(&mut self, now: Time, packet: PacketId, packets: &Packets) {
        match &mut self.link {
            Some([_, down]) => _ = down.send(now, packet, packets),
            None => self.begin(now, Job::Take(packet)),
        }
    }

    /// Time of the machine's next event (`NEVER`: it has nothing to do).
    pub fn next_event(&self) -> Time {
        let job = self.jobs.first_key_value().map_or(NEVER, |(&(done, _), _)| done);
        let on_link = self.link.iter().flatten().map(Link::next_arrival);
        on_link.fold(job, Time::min)
    }

    /// Removes a job that is done by now: a request to make, a packet for the switch, or one that has been received.
    pub fn take_done(&mut self, now: Time, packets: &Packets) -> Option<Job> {
        loop {
            if let Some(packet) = self.link.as_mut().and_then(|[up, _]| up.take_arrived(now)) {
                return Some(Job::Send(packet));
            }
            if let Some(packet) = self.link.as_mut().and_then(|[_, down]| down.take_arrived(now)) {
                self.begin(now, Job::Take(packet));
                continue;
            }
            let first = self.jobs.first_entry().filter(|entry| entry.key().0 <= now)?;
            match (first.remove(), &mut self.link) {
                (Job::Send(packet), Some([up, _])) => _ = up.send(now, packet, packets),
                (job, _) => return Some(job),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::client::Ask;
    use crate::network::tcp::{Kind, Packet, Side};
    use vcpulab_guest::ConnectionId;

    const ASK: Ask = Ask { class: 0, request_bytes: 300, reply_bytes: 1000, weight: 1 };

    fn machine(config: ClientMachineConfig) -> ClientMachine {
        ClientMachine::new(config)
    }

    fn packet(connection: u64, to: Side) -> Packet {
        Packet {
            connection: ConnectionId(connection),
            to,
            kind: Kind::Data,
            segments: 1,
            bytes: 910,
            acknowledges: 0,
            space: 0,
            retransmissions: 0,
            leg: None,
        }
    }

    /// All jobs done, each with its time.
    fn all(machine: &mut ClientMachine, packets: &Packets) -> Vec<(Time, Job)> {
        let mut done = Vec::new();
        while machine.next_event() < NEVER {
            let now = machine.next_event();
            done.extend(std::iter::from_fn(|| machine.take_done(now, packets)).map(|job| (now, job)));
        }
        done
    }

    #[test]
    fn requests_wait_for_a_processor() {
        let config = ClientMachineConfig {
            processors: 2,
            request_ns: Span::from_ns(100),
            ..ClientMachineConfig::default()
        };
        let mut machine = machine(config);
        for user in 0..5 {
            machine.begin(
                Time::from_ns(10),
                Job::Ask(ClientId(0), Asking { user, ask: ASK, begun: Time::from_ns(10) }),
            );
        }
        let times: Vec<Time> = all(&mut machine, &Packets::default()).iter().map(|&(time, _)| time).collect();
        assert_eq!(times, [110, 110, 210, 210, 310].map(Time::from_ns));
    }

    #[test]
    fn packets_take_a_processor_and_then_the_link_in_their_order() {
        let config = ClientMachineConfig {
            processors: 1,
            packet_ns: Span::from_ns(1_000),
            bits_per_s: Some(1_000_000_000),
            ..ClientMachineConfig::default()
        };
        let mut machine = machine(config);
        let mut packets = Packets::default();
        let [first, second] = [1, 2].map(|connection| packets.add(packet(connection, Side::Called)));
        machine.begin(Time::ZERO, Job::Send(first));
        machine.begin(Time::ZERO, Job::Send(second));
        // 1000 bytes with headers and framing take 8 us on the line.
        assert_eq!(
            all(&mut machine, &packets),
            [(Time::from_ns(9_000), Job::Send(first)), (Time::from_ns(17_000), Job::Send(second))]
        );
        let answer = packets.add(packet(1, Side::Caller));
        machine.receive(Time::from_ns(20_000), answer, &packets);
        assert_eq!(all(&mut machine, &packets), [(Time::from_ns(29_000), Job::Take(answer))]);
    }
}
