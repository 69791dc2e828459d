//! Readings of a machine, for result tables.

use vcpulab_guest::AppId;
use vcpulab_host::{HostState, Span, Table, Time};

use super::Machine;
use super::profiler::Samples;
use super::results::{AppResult, IoCounts};
use crate::ids::{ClientId, GuestId};
use crate::layers::Layers;
use crate::network::client::ClientSample;
use crate::network::netfront::NetfrontCounts;
use crate::network::nic::NicCounts;
use crate::path::route::Uplink;
use crate::sources::Source;
use crate::storage::blkfront::BlkfrontCounts;

/// The owner of a source of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A client outside.
    Client(ClientId),
    /// A guest, whose timer it is.
    Guest(GuestId),
    /// The disks.
    Disks,
    /// The NICs, links and connections.
    Network,
    /// The profiler.
    Profiler,
}

impl Machine {
    /// Makes `log` hear of every request of a client from now on, as soon as it is over.
    pub fn log_requests(&mut self, log: impl FnMut(&ClientSample) + 'static) {
        self.clients.set_log(log);
    }

    /// Brings what is counted by the clock up to now: to be called before statistics are read or set to zero.
    pub fn settle(&mut self, now: Time) {
        self.guests.all.iter_mut().for_each(|guest| guest.kernel.judge_deadlines(now));
    }

    /// Sets all counts to zero.
    pub fn reset_statistics(&mut self) {
        self.guests.all.iter_mut().for_each(|guest| guest.kernel.reset_stats());
        self.clients.all.iter_mut().for_each(|client| client.stats.reset());
        self.network.reset_counts();
        self.storage.reset_counts();
    }

    /// Achievements of applications and clients, by domain.
    pub fn results(&self) -> Vec<AppResult<'_>> {
        let mut clients: Table<GuestId, Vec<ClientId>> = Table::filled(self.guests.all.len(), Vec::new());
        for (id, client) in self.clients.all.enumerate() {
            clients[self.guests.services[client.config.service].0].push(id);
        }
        let mut results = Vec::new();
        for (id, guest) in self.guests.all.enumerate() {
            let stats = guest.kernel.stats();
            let apps = stats.enumerate();
            results.extend(apps.map(|(app, stats)| AppResult { guest: id, app, client: None, stats }));
            for (i, &client) in clients[id].iter().enumerate() {
                let (app, stats) = (AppId((stats.len() + i) as u32), &self.clients.all[client].stats);
                results.push(AppResult { guest: id, app, client: Some(client), stats });
            }
        }
        results
    }

    /// The I/O of a domain.
    pub fn io_counts(&self, guest: GuestId) -> IoCounts {
        IoCounts {
            netfront: self.netfront_counts(guest),
            nics: self.network.nic_counts(guest),
            blkfront: self.blkfront_counts(guest),
            disks: self.storage.disk_counts(guest),
            retransmissions: self.network.retransmissions[guest],
        }
    }

    /// XenMon's I/O count of a domain: packets and requests, once for each end of a ring, and once for a NIC, that it handles.
    pub fn io_count(&self, guest: GuestId) -> u64 {
        let own_packets = self.netfront_counts(guest).map_or(0, |counts| counts.received + counts.sent);
        let own_requests = self.blkfront_counts(guest).map_or(0, |counts| counts.requests);
        let own = own_packets + own_requests;
        if !self.drivers.contains(guest) {
            return own;
        }
        let nics = self.nic_counts(guest);
        // Of those behind it, the driver domain's side of their rings.
        let behind = self.network.netfronts.iter().filter(
            |netfront| matches!(netfront.uplink, Uplink::DriverDomain { guest: driver, .. } if driver == guest),
        );
        let packets: u64 = behind.map(|netfront| netfront.counts.page_exchanges + netfront.counts.sent).sum();
        let requests = self.storage.requests_behind(guest);
        own + nics.received + nics.sent + packets + requests
    }

    /// Traffic of a guest's virtual disk, if it has one.
    pub fn blkfront_counts(&self, guest: GuestId) -> Option<BlkfrontCounts> {
        self.storage.blkfront(guest).map(|blkfront| blkfront.counts())
    }

    /// Traffic of a guest's virtual network interface, if it has one.
    pub fn netfront_counts(&self, guest: GuestId) -> Option<NetfrontCounts> {
        self.network.netfront(guest).map(|netfront| netfront.counts)
    }

    /// Traffic of the NICs of a driver domain.
    pub fn nic_counts(&self, guest: GuestId) -> NicCounts {
        self.network.nic_counts(guest).unwrap_or_default()
    }

    /// CPU time that a guest's tasks burnt waiting for locks, ns.
    pub fn spin_ns(&self, guest: GuestId) -> Span {
        self.guests.all[guest].kernel.spin_ns()
    }

    /// Packets that found a NIC's queue or a guest's ring full; they are sent again later.
    pub fn lost_packets(&self) -> u64 {
        let at_nics: u64 = self.network.nics.iter().map(|nic| nic.counts.dropped).sum();
        let at_rings: u64 = self.network.netfronts.iter().map(|netfront| netfront.counts.dropped).sum();
        at_nics + at_rings
    }

    /// The owner of a source of events.
    pub fn owner_of(&self, source: usize) -> Owner {
        match self.sources.of(source) {
            Source::User(client) | Source::Timeout(client) => Owner::Client(client),
            Source::Timer(v) => {
                self.guests.vcpu(v).map_or(Owner::Network, |vcpu| Owner::Guest(vcpu.at.guest))
            }
            Source::Disk(_) => Owner::Disks,
            Source::Counter(_) => Owner::Profiler,
            Source::Interrupt(_)
            | Source::Inbound(_)
            | Source::Outbound(_)
            | Source::Retransmission
            | Source::DelayedAck
            | Source::SynRetransmission
            | Source::ClientMachine(_) => Owner::Network,
        }
    }

    /// The client that has failed most requests, if one has.
    pub fn most_failing_client(&self) -> Option<ClientId> {
        let failing = self.clients.all.enumerate().filter(|(_, client)| client.stats.failed > 0);
        failing.max_by_key(|(_, client)| client.stats.failed).map(|(id, _)| id)
    }

    /// Number of connections that are not over.
    pub fn open_connections(&self) -> usize {
        self.network.connections.open_count()
    }

    /// CPU time of a guest by layer since the start: together the time in which its vCPUs made progress.
    pub fn layers(&self, host: &HostState, guest: GuestId) -> Layers {
        self.guests.layers(host, guest)
    }

    /// The findings of the profiler's samples since the start, if there is one.
    pub fn samples(&self) -> Option<&Samples> {
        self.profiler.as_ref().map(|profiler| &profiler.samples)
    }
}
