//! Boots, stops, and vCPUs that come and go: their effect on guests, connections and devices.

use vcpulab_host::{LifeEvent, VcpuId, WorldContext};

use super::Machine;
use super::guests::Vcpu;
use crate::ids::GuestId;
use crate::network::client::Outcome;

impl Machine {
    /// Follows an event in the life of a domain.
    pub(super) fn follow(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        match event {
            LifeEvent::Booted(d) => {
                let guest = GuestId::from(d);
                self.empty(ctx, guest);
                self.guests.all[guest].kernel.reboot(ctx.now(), self.seed, guest.0.into());
            }
            LifeEvent::Stopped(d) => self.empty(ctx, d.into()),
            // It goes on where it stood; packets that came meanwhile wait in its rings.
            LifeEvent::Saved(_) | LifeEvent::Restored(_) => {}
            LifeEvent::VcpuUp(v) => self.bring_online(ctx, v),
            LifeEvent::VcpuDown(v) => self.take_offline(ctx, v),
        }
    }

    /// Loses the work at hand of a guest, and breaks its connections: the other ends that wait hear of it.
    fn empty(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId) {
        self.guests.forget_work(ctx.host(), guest, &mut self.network.packets);
        if let Some(netfront) = self.network.routes.netfront(guest) {
            self.network.netfronts[netfront].clear(&mut self.network.packets);
        }
        if let Some(blkfront) = self.storage.blkfront_mut(guest) {
            blkfront.reboot();
        }
        self.guests.channels.forget(guest);
        self.drivers.reboot(guest);
        self.guests.all[guest].forget_exchange(&mut self.network.packets);
        for id in self.network.connections.of_guest(guest) {
            let Some(&over) = self.network.connections.get(id) else { continue };
            let [caller, called] = over.parties;
            let waits = !over.is_answered() && !over.streams && caller.guest() != Some(guest);
            if called.guest() != Some(guest) {
                self.disconnect(ctx, id, called);
            }
            self.network.connections.close(id);
            if waits {
                self.failed(ctx, &over, Outcome::Reset);
            }
        }
    }

    fn bring_online(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId) {
        let Some(&Vcpu { at, .. }) = self.guests.vcpu(v) else { return };
        self.guests.all[at.guest].kernel.bring_online(at.index());
        self.drivers.bring_online(at, &self.network);
        self.guests.kick_tasks(ctx, at.guest);
    }

    fn take_offline(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId) {
        let Some(&Vcpu { at, .. }) = self.guests.vcpu(v) else { return };
        self.guests.all[at.guest].kernel.take_offline(at.index());
        // A kernel ends the work at hand of a driver before the vCPU goes.
        if let Some(work) = self.guests.take_backend_work(ctx.host(), v) {
            self.finish(ctx, at, work);
        }
        self.drivers.take_offline(ctx, at);
        self.guests.kick_tasks(ctx, at.guest);
    }
}
