//! The back ends of a driver domain: between its cards and the rings of the guests behind it. Each of its vCPUs has the cards
//! and interfaces whose interrupts and events it takes.
//!
//! Once it runs it takes everything that is there, in rounds: first from the cards, then from the rings, each guest in
//! turn; guests hear of it at the end of a round. With nothing left it sleeps. So a driver domain that is given the
//! pCPU late finds more to do at once: batching is not a parameter here.

use std::collections::VecDeque;

use vcpulab_host::{IoKind, IoStep, Span, VcpuId, WakeCause, WorldContext};

use crate::block::Block;
use crate::blockback::{BlockBack, BlockBackWork, Store};
use crate::interface::Interface;
use crate::nic::Nic;
use crate::tcp::Packet;

/// Packets of one direction that a driver domain takes in one round, before it looks at the other direction (the usual
/// budget of a network driver's polling loop).
const ROUND: usize = 64;

/// What a driver domain is at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DriverWork {
    /// It takes the notifications that are pending.
    Upcall,
    /// It takes a packet from that card.
    Receive(usize, Packet),
    /// It takes one from that interface's ring.
    Send(usize, Packet),
    /// It serves the virtual disks on that disk.
    Disk(usize, BlockBackWork, Span),
}

/// A disk, or what stands for one in a stub domain, and its back ends.
#[derive(Clone, Debug)]
pub(crate) struct DiskUnit {
    pub store: Store,
    pub back: BlockBack,
    /// The guest that it belongs to, and which of its vCPUs takes its interrupts; `None`: the hypervisor.
    pub owner: Option<(usize, u32)>,
}

/// The devices, and the front ends before them.
pub(crate) struct Devices<'m> {
    pub nics: &'m mut [Nic],
    pub interfaces: &'m mut [Interface],
    pub disks: &'m mut [DiskUnit],
    pub blocks: &'m mut [Block],
}

/// The back ends on one vCPU of a driver domain.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    /// Where interrupts and events go.
    pub vcpu: VcpuId,
    /// The cards whose interrupts it takes.
    pub nics: Vec<usize>,
    /// The disks whose interrupts it takes.
    pub disks: Vec<usize>,
    /// Do packets wait until another vCPU of the driver domain is done with one?
    pub waits_for_turn: bool,
    /// Is it at work, or has it been told that there is some?
    awake: bool,
    /// Has it been told something that it has not taken yet?
    notified: bool,
    /// Is a round begun that has not ended yet? What it is told meanwhile does not make the round longer: guests that are to
    /// be told at its end would wait for as long as interrupts come faster than rounds end.
    in_round: bool,
    /// What is left of the round in each direction.
    receives: usize,
    sends: usize,
    /// Interfaces with packets in their rings, each once, the next one first.
    senders: VecDeque<usize>,
    /// Interfaces whose guests are to be told at the end of the round.
    to_tell: Vec<usize>,
}

impl Backend {
    /// Back ends with nothing to do.
    pub fn new(vcpu: VcpuId, interfaces: usize) -> Self {
        Backend {
            vcpu,
            nics: Vec::new(),
            disks: Vec::new(),
            waits_for_turn: false,
            awake: false,
            notified: false,
            in_round: false,
            receives: 0,
            sends: 0,
            senders: VecDeque::with_capacity(interfaces),
            to_tell: Vec::with_capacity(interfaces),
        }
    }

    /// A card has something to tell.
    pub fn interrupt(&mut self, ctx: &mut WorldContext<'_>, nic: &mut Nic) {
        nic.interrupted(ctx.now());
        self.interrupted(ctx);
    }

    /// A device whose interrupts it takes has interrupted.
    pub fn interrupted(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.interrupt(ctx.host().processor(self.vcpu));
        let domain = ctx.host().dom(self.vcpu);
        ctx.step(IoStep { kind: IoKind::Interrupt, domain, id: 0, value: 0 });
        self.notify(ctx, WakeCause::Interrupt);
    }

    fn notify(&mut self, ctx: &mut WorldContext<'_>, cause: WakeCause) {
        self.notified = true;
        if !std::mem::replace(&mut self.awake, true) {
            if cause == WakeCause::Event {
                let domain = ctx.host().dom(self.vcpu);
                ctx.step(IoStep { kind: IoKind::EventSent, domain, id: 0, value: self.senders.len() as i64 });
            }
            ctx.kick(self.vcpu, cause);
        }
    }

    /// A guest has put a packet into the ring of that interface (`first`: the only one there). One that is at work
    /// anyway need not be told.
    pub fn ring_filled(&mut self, ctx: &mut WorldContext<'_>, interface: usize, first: bool) {
        if first {
            self.senders.push_back(interface);
        }
        self.told(ctx);
    }

    /// A guest has put something into a ring. One that is at work anyway need not be told.
    pub fn told(&mut self, ctx: &mut WorldContext<'_>) {
        if !self.awake {
            self.notify(ctx, WakeCause::Event);
        }
    }

    /// What it does next; `None`: there is nothing. `turn`: may it take packets, or is another vCPU at one?
    pub fn next(
        &mut self,
        ctx: &mut WorldContext<'_>,
        devices: &mut Devices<'_>,
        turn: bool,
    ) -> Option<DriverWork> {
        loop {
            if std::mem::take(&mut self.notified) {
                if !self.in_round {
                    self.begin_round(devices);
                }
                return Some(DriverWork::Upcall);
            }
            for &number in &self.disks {
                let unit = &mut devices.disks[number];
                if let Some((work, cost)) = unit.back.next_work(devices.blocks, &mut unit.store) {
                    return Some(DriverWork::Disk(number, work, cost));
                }
            }
            if !turn && (!self.senders.is_empty() || self.waiting(devices.nics) > 0) {
                self.waits_for_turn = true;
                return None;
            }
            let Devices { nics, interfaces, .. } = devices;
            if self.receives > 0
                && let Some((nic, packet)) =
                    self.nics.iter().find_map(|&nic| nics[nic].take_received().map(|packet| (nic, packet)))
            {
                self.receives -= 1;
                return Some(DriverWork::Receive(nic, packet));
            }
            let mut blocked = self.senders.is_empty();
            if self.sends > 0 && !blocked {
                match self.take(ctx, nics, interfaces) {
                    Some((interface, packet)) => {
                        self.sends -= 1;
                        return Some(DriverWork::Send(interface, packet));
                    }
                    None => blocked = true,
                }
            }
            for interface in self.to_tell.drain(..) {
                interfaces[interface].send_event(ctx);
            }
            let mut disks_wait = false;
            for &number in &self.disks {
                let unit = &mut devices.disks[number];
                while let Some(block) = unit.back.take_to_tell() {
                    let block = &mut devices.blocks[block];
                    if block.send_event() {
                        ctx.kick(block.vcpu, WakeCause::Event);
                    }
                }
                disks_wait |= unit.back.has_work(devices.blocks, &unit.store);
            }
            if self.waiting(devices.nics) == 0 && blocked && !disks_wait {
                (self.awake, self.in_round) = (false, false);
                return None;
            }
            self.begin_round(devices);
        }
    }

    fn waiting(&self, nics: &[Nic]) -> usize {
        self.nics.iter().map(|&nic| nics[nic].waiting()).sum()
    }

    fn begin_round(&mut self, devices: &mut Devices<'_>) {
        self.in_round = true;
        (self.receives, self.sends) = (self.waiting(devices.nics).min(ROUND), ROUND);
        for &number in &self.disks {
            devices.disks[number].back.begin_round();
        }
    }

    /// The next packet from the rings whose card has room for it.
    fn take(
        &mut self,
        ctx: &WorldContext<'_>,
        nics: &[Nic],
        interfaces: &mut [Interface],
    ) -> Option<(usize, Packet)> {
        for _ in 0..self.senders.len() {
            let sender = self.senders.pop_front()?;
            let interface = &mut interfaces[sender];
            if !nics[interface.nic].can_send(ctx.now()) {
                self.senders.push_back(sender);
                continue;
            }
            let Some((packet, tell)) = interface.take() else { continue };
            if tell {
                self.to_tell.push(sender);
            }
            if interface.has_packets() {
                self.senders.push_back(sender);
            }
            return Some((sender, packet));
        }
        None
    }

    /// The guest behind that interface is to be told at the end of the round.
    pub fn tell(&mut self, interface: usize) {
        self.to_tell.push(interface);
    }
}
