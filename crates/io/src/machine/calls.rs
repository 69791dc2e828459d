//! Demands of tasks on the network, the disk and event channels.

use vcpulab_guest::script::{Call, Peer};
use vcpulab_guest::{ConnectionId, Io, Service, TaskId};
use vcpulab_host::WorldContext;

use super::Machine;
use crate::ids::GuestId;
use crate::network::tcp::{Connection, Kind, Party, Sender, Side};

impl Machine {
    /// Meets a demand of a task, the current one of the vCPU that executes.
    pub(super) fn call(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, task: TaskId, io: Io) {
        self.demanded(guest, task, io);
        match io {
            Io::Reply { connection, bytes } => self.answer(ctx, connection, bytes),
            Io::Notify(channel) => {
                if let Some((guest, task)) = self.guests.channels.notify(channel) {
                    self.guests.resume(ctx, guest, task);
                }
            }
            Io::AwaitEvent(channel) => {
                if !self.guests.channels.take(channel, guest, task) {
                    self.guests.all[guest].kernel.wait(task);
                }
            }
            Io::Call(call) => self.ask_service(ctx, guest, task, call),
            Io::Connect(peer) => self.open_stream(ctx, guest, task, peer),
            Io::Send { stream, bytes, push } => self.send(ctx, guest, task, stream, bytes, push),
            Io::Receive { stream, bytes } => self.read(ctx, guest, task, stream, bytes),
            Io::ReadFile { bytes } => self.read_file(guest, task, bytes),
            Io::Disk(_) | Io::Sync => self.disk_access(ctx, guest, task, io),
        }
    }

    fn disk_access(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, task: TaskId, io: Io) {
        let Some(blkfront) = self.storage.blkfront_mut(guest) else { return };
        let kernel = &mut self.guests.all[guest].kernel;
        kernel.wait(task);
        match io {
            Io::Disk(access) => blkfront.access(task, kernel.app_of(task), access),
            _ => blkfront.sync(task),
        }
        self.resume_disk_tasks(ctx, guest);
    }

    fn read_file(&mut self, guest: GuestId, task: TaskId, bytes: u32) {
        let Some(blkfront) = self.storage.blkfront_mut(guest) else { return };
        let kernel = &mut self.guests.all[guest].kernel;
        let processes = kernel.service(kernel.app_of(task)).map_or(0, Service::connections);
        if blkfront.read_file(task, bytes, processes) {
            kernel.wait(task);
        }
    }

    fn ask_service(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, task: TaskId, call: Call) {
        let service = call.service;
        let Some(&(of, app)) = self.guests.services.get(service) else { return };
        self.guests.all[guest].kernel.wait(task);
        let kept =
            if call.connects { None } else { self.guests.all[guest].exchange().kept.entry(service).pop() };
        let kept = kept.filter(|&id| self.network.connections.get(id).is_some());
        let parties = [Party::Task { guest, task }, Party::Service { guest: of, app }];
        let id = kept.unwrap_or_else(|| self.network.connections.open(parties, ctx.now()));
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        connection.parties = parties;
        connection.asked_at = ctx.now();
        connection.closes = call.connects;
        (connection.class, connection.asks) = (call.class, call.reply);
        connection.request_bytes = call.request;
        match kept {
            Some(_) => self.ask(ctx, id),
            None => self.send_plain(ctx, id, Side::Caller, Kind::Syn),
        }
    }

    fn open_stream(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, task: TaskId, peer: Peer) {
        let to = match peer {
            Peer::Outside => Party::Outside,
            Peer::Service(service) => match self.guests.services.get(service) {
                Some(&(guest, app)) => Party::Service { guest, app },
                None => return,
            },
        };
        let kernel = &mut self.guests.all[guest].kernel;
        let send_buffer = kernel.apps()[kernel.app_of(task)].send_buffer;
        kernel.wait(task);
        let id = self.network.connections.open([Party::Task { guest, task }, to], ctx.now());
        if let Some(connection) = self.network.connections.get_mut(id) {
            connection.streams = true;
            if let Some(bytes) = send_buffer {
                connection.set_send_buffer(Side::Caller, bytes);
            }
        }
        self.send_plain(ctx, id, Side::Caller, Kind::Syn);
    }

    fn send(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        task: TaskId,
        id: ConnectionId,
        bytes: u32,
        push: bool,
    ) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let side = side_of(connection, guest, task);
        match push {
            true => connection.enqueue(side, bytes),
            false => connection.enqueue_stream(side, bytes),
        }
        if connection.outstanding(side) > connection.send_buffer(side) {
            connection.senders[side as usize] = Some(Sender::Task(task));
            self.guests.all[guest].kernel.wait(task);
        }
        self.send_queued(ctx, id, side);
    }

    fn read(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        task: TaskId,
        id: ConnectionId,
        bytes: u32,
    ) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let side = side_of(connection, guest, task);
        let bytes = bytes.min(Connection::readable_max());
        if connection.unread(side) >= bytes {
            self.take_from_stream(ctx, id, side, bytes);
        } else {
            connection.readers[side as usize] = Some((task, bytes));
            self.guests.all[guest].kernel.wait(task);
        }
    }
}

/// A task's end of a connection: the caller's if it began it, otherwise its service's.
fn side_of(connection: &Connection, guest: GuestId, task: TaskId) -> Side {
    match connection.parties[Side::Caller as usize] {
        Party::Task { guest: g, task: t } if (g, t) == (guest, task) => Side::Caller,
        _ => Side::Called,
    }
}
