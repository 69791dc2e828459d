//! The back ends of a driver domain: between its NIC and the rings of the guests behind it.
//!
//! Once it runs it takes everything that is there, in rounds: first from the NIC, then from the rings, each guest in
//! turn; guests hear of it at the end of a round. With nothing left it sleeps. So a driver domain that is given the
//! pCPU late finds more to do at once: batching is not a parameter here.

use std::collections::VecDeque;

use vcpulab_host::{IoKind, IoStep, Span, VcpuId, WakeCause, WorldContext};

use crate::config::DriverCosts;
use crate::connection::Packet;
use crate::interface::Interface;
use crate::nic::Nic;

/// Packets of one direction that a driver domain takes in one round, before it looks at the other direction (the usual
/// budget of a network driver's polling loop).
const ROUND: usize = 64;

/// What a driver domain is at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DriverWork {
    /// It takes the notifications that are pending.
    Upcall,
    /// It receives a packet for a guest.
    Receive(Packet),
    /// It sends one for a guest.
    Send(Packet),
}

/// The back ends of a driver domain.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    pub nic: Nic,
    /// Where interrupts and events go.
    pub vcpu: VcpuId,
    costs: DriverCosts,
    /// Is it at work, or has it been told that there is some?
    awake: bool,
    /// Has it been told something that it has not taken yet?
    notified: bool,
    /// What is left of the round in each direction.
    receives: usize,
    sends: usize,
    /// Interfaces with packets in their rings, each once, the next one first.
    senders: VecDeque<usize>,
    /// Interfaces whose guests are to be told at the end of the round.
    to_tell: Vec<usize>,
}

impl Driver {
    /// Back ends with nothing to do.
    pub fn new(nic: Nic, vcpu: VcpuId, costs: DriverCosts) -> Self {
        Driver {
            nic,
            vcpu,
            costs,
            awake: false,
            notified: false,
            receives: 0,
            sends: 0,
            senders: VecDeque::new(),
            to_tell: Vec::new(),
        }
    }

    /// The NIC has something to tell.
    pub fn interrupt(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.interrupt(ctx.host().home(self.vcpu));
        self.nic.interrupted(ctx.now());
        let domain = ctx.host().dom(self.vcpu);
        ctx.step(IoStep { kind: IoKind::Interrupt, domain, id: 0, value: 0 });
        self.notify(ctx, WakeCause::Interrupt);
    }

    fn notify(&mut self, ctx: &mut WorldContext<'_>, cause: WakeCause) {
        self.notified = true;
        if !std::mem::replace(&mut self.awake, true) {
            ctx.kick(self.vcpu, cause);
        }
    }

    /// A guest has put a packet into the ring of that interface (`first`: the only one there). One that is at work
    /// anyway need not be told.
    pub fn ring_filled(&mut self, ctx: &mut WorldContext<'_>, interface: usize, first: bool) {
        if first {
            self.senders.push_back(interface);
        }
        if !self.awake {
            self.notify(ctx, WakeCause::Event);
        }
    }

    /// What it does next, and what that costs; `None`: there is nothing.
    pub fn next(
        &mut self,
        ctx: &mut WorldContext<'_>,
        interfaces: &mut [Interface],
    ) -> Option<(DriverWork, Span)> {
        loop {
            if std::mem::take(&mut self.notified) {
                self.begin_round();
                return Some((DriverWork::Upcall, self.costs.upcall_ns));
            }
            if self.receives > 0
                && let Some(packet) = self.nic.take_received()
            {
                self.receives -= 1;
                return Some((DriverWork::Receive(packet), self.costs.receive_ns));
            }
            let can_send = self.nic.can_send(ctx.now());
            if self.sends > 0
                && can_send
                && let Some(packet) = self.take(interfaces)
            {
                self.sends -= 1;
                return Some((DriverWork::Send(packet), self.costs.send_ns));
            }
            for interface in self.to_tell.drain(..) {
                interfaces[interface].send_event(ctx);
            }
            if self.nic.waiting() == 0 && (self.senders.is_empty() || !can_send) {
                self.awake = false;
                return None;
            }
            self.begin_round();
        }
    }

    fn begin_round(&mut self) {
        (self.receives, self.sends) = (self.nic.waiting().min(ROUND), ROUND);
    }

    /// The next packet from the rings.
    fn take(&mut self, interfaces: &mut [Interface]) -> Option<Packet> {
        let sender = self.senders.pop_front()?;
        let (packet, tell) = interfaces[sender].take()?;
        if tell {
            self.to_tell.push(sender);
        }
        if interfaces[sender].has_packets() {
            self.senders.push_back(sender);
        }
        Some(packet)
    }

    /// A packet received goes into the ring of that interface. Gives it back if there is no room.
    pub fn hand_over(
        &mut self,
        interfaces: &mut [Interface],
        interface: usize,
        packet: Packet,
    ) -> Result<(), Packet> {
        if interfaces[interface].hand_over(packet)? {
            self.to_tell.push(interface);
        }
        Ok(())
    }
}
