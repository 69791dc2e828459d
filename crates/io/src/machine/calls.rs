//! What tasks ask for, carried out.

use vcpulab_guest::Io;
use vcpulab_guest::script::{Call, Peer};
use vcpulab_host::WorldContext;

use super::Machine;
use crate::tcp::{Connection, ConnectionId, Kind, Party, Side};

impl Machine {
    /// A task, the current one of the vCPU that executes, asks for something.
    pub(super) fn call(&mut self, ctx: &mut WorldContext<'_>, guest: usize, task: usize, io: Io) {
        match io {
            Io::Reply { connection, bytes } => self.answer(ctx, connection, bytes),
            Io::Notify(channel) => self.notify(ctx, channel),
            Io::AwaitEvent(channel) => self.await_event(guest, task, channel),
            Io::Call(call) => self.ask_service(ctx, guest, task, call),
            Io::Connect(peer) => self.open_stream(ctx, guest, task, peer),
            Io::Send { stream, bytes, push } => self.send(ctx, guest, task, stream, (bytes, push)),
            Io::Receive { stream, bytes } => self.read(ctx, guest, task, stream, bytes),
            Io::ReadFile { bytes } => self.read_file(guest, task, bytes),
            Io::Disk(_) | Io::Sync => self.disk_access(ctx, guest, task, io),
        }
    }

    fn disk_access(&mut self, ctx: &mut WorldContext<'_>, guest: usize, task: usize, io: Io) {
        let Some(block) = self.guests[guest].block else { return };
        let kernel = &mut self.guests[guest].kernel;
        kernel.wait(task);
        match io {
            Io::Disk(access) => self.blocks[block].access(task, kernel.app_of(task), access),
            _ => self.blocks[block].sync(task),
        }
        self.resume_disk_tasks(ctx, guest);
    }

    fn read_file(&mut self, guest: usize, task: usize, bytes: u32) {
        let Some(block) = self.guests[guest].block else { return };
        let kernel = &mut self.guests[guest].kernel;
        let processes = kernel.connections(kernel.app_of(task));
        if self.blocks[block].read_file(task, bytes, processes) {
            kernel.wait(task);
        }
    }

    fn ask_service(&mut self, ctx: &mut WorldContext<'_>, guest: usize, task: usize, call: Call) {
        let service = call.service as usize;
        let Some(&(of, app)) = self.services.get(service) else { return };
        self.guests[guest].kernel.wait(task);
        let kept = if call.connects { None } else { self.guests[guest].kept[service].pop() };
        let kept = kept.filter(|&id| self.connections.get(id).is_some());
        let parties = [Party::Task { guest, task }, Party::Service { guest: of, app }];
        let id = kept.unwrap_or_else(|| self.connections.open(parties, ctx.now()));
        let Some(connection) = self.connections.get(id) else { return };
        connection.parties = parties;
        connection.asked_at = ctx.now();
        connection.closes = call.connects;
        (connection.class, connection.asks) = (call.class, call.reply);
        connection.request_bytes = call.request;
        match kept {
            Some(_) => self.ask(ctx, id),
            None => self.begin(ctx, id),
        }
    }

    fn begin(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId) {
        if let Some(connection) = self.connections.get(id) {
            let packet = connection.packet(id, Side::Caller, Kind::Syn);
            self.transmit(ctx, packet);
        }
    }

    fn open_stream(&mut self, ctx: &mut WorldContext<'_>, guest: usize, task: usize, peer: Peer) {
        let to = match peer {
            Peer::Outside => Party::Outside,
            Peer::Service(service) => match self.services.get(service as usize) {
                Some(&(guest, app)) => Party::Service { guest, app },
                None => return,
            },
        };
        let kernel = &mut self.guests[guest].kernel;
        let send_buffer = kernel.apps()[kernel.app_of(task)].send_buffer;
        kernel.wait(task);
        let id = self.connections.open([Party::Task { guest, task }, to], ctx.now());
        if let Some(connection) = self.connections.get(id) {
            connection.streams = true;
            if let Some(bytes) = send_buffer {
                connection.set_send_buffer(Side::Caller, bytes);
            }
        }
        self.begin(ctx, id);
    }

    fn send(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: usize,
        task: usize,
        id: ConnectionId,
        (bytes, push): (u32, bool),
    ) {
        let Some(connection) = self.connections.get(id) else { return };
        let side = side_of(connection, guest, task);
        match push {
            true => connection.hand_over(side, bytes),
            false => connection.hand_over_stream(side, bytes),
        }
        if connection.outstanding(side) > connection.send_buffer(side) {
            connection.senders[side as usize] = Some(task);
            self.guests[guest].kernel.wait(task);
        }
        self.send_on(ctx, id, side);
    }

    fn read(&mut self, ctx: &mut WorldContext<'_>, guest: usize, task: usize, id: ConnectionId, bytes: u32) {
        let Some(connection) = self.connections.get(id) else { return };
        let side = side_of(connection, guest, task);
        let bytes = bytes.min(Connection::readable_max());
        if connection.unread(side) >= bytes {
            self.take_from_stream(ctx, id, side, bytes);
        } else {
            connection.readers[side as usize] = Some((task, bytes));
            self.guests[guest].kernel.wait(task);
        }
    }
}

/// Which end of a connection is a task's: the caller's if it began it, otherwise its service's.
fn side_of(connection: &Connection, guest: usize, task: usize) -> Side {
    match connection.parties[Side::Caller as usize] {
        Party::Task { guest: g, task: t } if (g, t) == (guest, task) => Side::Caller,
        _ => Side::Called,
    }
}
