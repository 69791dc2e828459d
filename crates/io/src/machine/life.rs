//! What the life of a domain means to its inside, its connections and its devices.

use vcpulab_host::{LifeEvent, VcpuId, WorldContext};

use super::Machine;
use crate::client::Outcome;

impl Machine {
    pub(super) fn lives(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        match event {
            LifeEvent::Booted(d) => {
                let guest = d.index();
                self.empty(ctx, guest);
                self.guests[guest].kernel.reboot(ctx.now(), self.seed, guest as u64);
            }
            LifeEvent::Stopped(d) => self.empty(ctx, d.index()),
            // It goes on where it stood; what came meanwhile waits in its rings.
            LifeEvent::Saved(_) | LifeEvent::Restored(_) => {}
            LifeEvent::VcpuUp(v) => self.set_online(ctx, v, true),
            LifeEvent::VcpuDown(v) => self.set_online(ctx, v, false),
        }
    }

    /// All that a guest was at is lost, and its connections break: whoever waits at the other end of one hears of it.
    fn empty(&mut self, ctx: &mut WorldContext<'_>, guest: usize) {
        for vcpu in self.vcpus.iter_mut().flatten().filter(|vcpu| vcpu.guest == guest) {
            vcpu.at_work = None;
        }
        if let Some(interface) = self.guests[guest].interface {
            self.interfaces[interface].clear();
        }
        if let Some(block) = self.guests[guest].block {
            self.blocks[block].reboot();
        }
        self.leave_channels(guest);
        self.guests[guest].turn = None;
        self.guests[guest].loopback.clear();
        self.guests[guest].kept.iter_mut().for_each(Vec::clear);
        for id in self.connections.of_guest(guest) {
            let Some(connection) = self.connections.get(id) else { continue };
            let over = *connection;
            let [caller, called] = over.parties;
            let waits = !over.is_answered() && !over.streams && caller.guest() != Some(guest);
            if called.guest() != Some(guest) {
                self.disconnect(ctx, id, called);
            }
            self.connections.close(id);
            if waits {
                self.failed(ctx, &over, Outcome::Reset);
            }
        }
    }

    fn set_online(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, online: bool) {
        let Some((guest, number)) =
            self.vcpus.get(v.index()).and_then(Option::as_ref).map(|vcpu| (vcpu.guest, vcpu.number))
        else {
            return;
        };
        self.guests[guest].kernel.set_online(number, online);
        self.kick_tasks(ctx, guest);
    }
}
