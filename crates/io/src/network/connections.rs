//! The table of all connections.

use vcpulab_guest::ConnectionId;
use vcpulab_host::{Table, Time};

use super::tcp::{Connection, Party, Side};
use crate::ids::{ClientMachineId, GuestId};

/// All connections. Numbers are used again: an id holds, above the number, how often it was used before, so that a packet of
/// a connection that is over finds none.
#[derive(Clone, Debug)]
pub struct Connections {
    initial_segments: u32,
    all: Vec<(u32, Option<Connection>)>,
    free: Vec<u32>,
    /// The number that each client machine has.
    of_machines: Table<ClientMachineId, u32>,
}

impl Connections {
    /// An empty set; new connections begin with this window, in segments.
    pub fn new(initial_segments: u32) -> Self {
        Connections { initial_segments, all: Vec::new(), free: Vec::new(), of_machines: Table::new() }
    }

    /// Opens a connection between these two.
    pub fn open(&mut self, parties: [Party; 2], now: Time) -> ConnectionId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push((0, None));
            self.all.len() as u32 - 1
        });
        let (uses, connection) = &mut self.all[number as usize];
        *connection = Some(Connection::new(parties, now, self.initial_segments));
        connection_id(number, *uses)
    }

    /// Opens a connection from a client machine.
    pub fn open_from(&mut self, machine: ClientMachineId, parties: [Party; 2], now: Time) -> ConnectionId {
        let id = self.open(parties, now);
        if let Some(connection) = self.get_mut(id) {
            connection.machine = Some(machine);
        }
        *self.of_machines.entry(machine) += 1;
        id
    }

    /// The number that a client machine has.
    pub fn of_machine(&self, machine: ClientMachineId) -> u32 {
        self.of_machines.get(machine).copied().unwrap_or(0)
    }

    /// A connection, if it is not over.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let (uses, connection) = self.all.get(number_of(id) as usize)?;
        if *uses == uses_of(id) { connection.as_ref() } else { None }
    }

    /// A connection, if it is not over, to change it.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let (uses, connection) = self.all.get_mut(number_of(id) as usize)?;
        if *uses == uses_of(id) { connection.as_mut() } else { None }
    }

    /// Makes the caller of a connection forget it.
    pub fn abandon(&mut self, id: ConnectionId) {
        let Some(connection) = self.get_mut(id).filter(|connection| !connection.abandoned) else { return };
        connection.abandoned = true;
        connection.parties[Side::Caller as usize] = Party::Outside;
        if let Some(machine) = connection.machine {
            self.of_machines[machine] -= 1;
        }
    }

    /// Ends a connection.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id) {
            if let Some(machine) = connection.machine.filter(|_| !connection.abandoned) {
                self.of_machines[machine] -= 1;
            }
            let number = number_of(id);
            let (uses, connection) = &mut self.all[number as usize];
            *connection = None;
            *uses = uses.wrapping_add(1);
            self.free.push(number);
        }
    }

    /// The connections with an end in a guest.
    pub fn of_guest(&self, guest: GuestId) -> Vec<ConnectionId> {
        let with_ids = self.all.iter().enumerate();
        let of = |(number, (uses, connection)): (usize, &(u32, Option<Connection>))| {
            let inside = connection.as_ref()?.parties.iter().any(|party| party.guest() == Some(guest));
            inside.then_some(connection_id(number as u32, *uses))
        };
        with_ids.filter_map(of).collect()
    }

    /// The number of connections that are not over.
    pub fn open_count(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

fn connection_id(number: u32, uses: u32) -> ConnectionId {
    ConnectionId(u64::from(uses) << 32 | u64::from(number))
}

fn number_of(id: ConnectionId) -> u32 {
    id.0 as u32
}

fn uses_of(id: ConnectionId) -> u32 {
    (id.0 >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_connection_that_is_over_finds_nothing() {
        let mut connections = Connections::new(4);
        let first = connections.open([Party::Outside; 2], Time::ZERO);
        connections.close(first);
        connections.close(first);
        let second = connections.open([Party::Outside; 2], Time::from_ns(5));
        assert!(connections.get(first).is_none() && connections.get(second).is_some());
        assert_eq!(
            (connections.open_count(), number_of(second)),
            (1, number_of(first)),
            "its number is used again"
        );
    }
}
