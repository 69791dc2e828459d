//! Following single requests through the machine: see [`legs`](crate::path::legs).

use vcpulab_guest::kernel::Standing;
use vcpulab_guest::{Io, TaskId};
use vcpulab_host::{VcpuId, WorldContext};

use super::Machine;
use super::work::Work;
use crate::ids::GuestId;
use crate::path::legs::{Followed, Leg, Paths, Place};

impl Machine {
    /// Follows these requests of clients. Nothing happens otherwise than without.
    pub fn follow_requests(&mut self, requests: &[Followed]) {
        self.network.paths = Some(Box::new(Paths::new(requests)));
    }

    /// The path of each request followed, in their order: its legs, up to the answer; none if that has not come.
    pub fn paths(&self) -> Vec<Vec<Leg>> {
        self.network.paths.as_ref().map_or_else(Vec::new, |paths| paths.all())
    }

    /// Notes a demand of a task, from which everything follows that is done now.
    pub(super) fn demanded(&mut self, guest: GuestId, task: TaskId, io: Io) {
        let Some(paths) = &mut self.network.paths else { return };
        let taken = self.guests.all[guest].kernel.request_of(task);
        let served = paths.served_by(taken);
        let leg = served.as_ref().map(|served| served.leg);
        if let Some(served) = served {
            served.waits_for = match io {
                Io::Disk(_) | Io::ReadFile { .. } | Io::Sync => Place::Disk(guest),
                Io::AwaitEvent(_) => Place::Event(guest),
                _ => Place::Call(guest),
            };
        }
        paths.cause = leg;
        if let Io::Reply { connection, .. } = io {
            paths.served.remove(&connection);
        }
    }

    /// A task continues because of the packet at hand.
    pub(super) fn goes_on(&mut self, guest: GuestId, task: TaskId) {
        let Some(paths) = &mut self.network.paths else { return };
        let (cause, taken) = (paths.cause, self.guests.all[guest].kernel.request_of(task));
        if let Some(cause) = cause
            && let Some(served) = paths.served_by(taken)
        {
            served.leg = cause;
        }
    }

    /// Looks, after each event, where the requests are now that are with their services.
    #[cold]
    pub(super) fn look_at_served(&mut self, ctx: &WorldContext<'_>) {
        let Some(paths) = &mut self.network.paths else { return };
        paths.cause = None;
        let mut all = std::mem::take(&mut paths.served);
        for served in all.values_mut() {
            let guest = &self.guests.all[served.guest];
            let taken = served.request.and_then(|request| guest.kernel.server_of(served.app, &request));
            let Some(task) = taken else { continue };
            let (number, standing) = guest.kernel.standing(task);
            let v = VcpuId(guest.first_vcpu.0 + number as u32);
            let computes = matches!(self.guests.vcpu(v).and_then(|vcpu| vcpu.work), Some(Work::Tasks(_)));
            let (place, vcpu) = match standing {
                Standing::Current if computes => (Place::Task, Some(v)),
                Standing::Spins if computes => (Place::Spin, Some(v)),
                Standing::Current | Standing::Spins | Standing::Queued => (Place::Ready, Some(v)),
                Standing::Sleeps => (Place::Sleep(served.guest), None),
                Standing::Waits => (served.waits_for, None),
            };
            if standing != Standing::Waits {
                served.waits_for = Place::Lock(served.guest);
            }
            if paths.at(served.leg) != (place, vcpu) {
                served.leg = paths.begin(served.leg, place, ctx.now(), vcpu);
            }
        }
        paths.served = all;
    }
}
