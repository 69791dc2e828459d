//! Clients outside the host, and the machines that they run on.

use vcpulab_host::Span;
use vcpulab_io::{ClientMachineId, Load};

use crate::app::Service;

/// A client outside the host.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSpec {
    /// Name of the client.
    pub name: String,
    /// The service it asks.
    pub service: Service,
    /// The client machine it runs on; `None`: one that limits nothing.
    pub machine: Option<ClientMachineId>,
    /// The times of its requests.
    pub load: Load,
    /// The requests it sends.
    pub mix: Vec<AskSpec>,
    /// Most requests outstanding.
    pub connections_max: u32,
    /// Whether a user keeps its connection from one request to the next.
    pub keep_alive: bool,
    /// Time without an answer after which a request has failed.
    pub timeout: Option<Span>,
    /// Most times that a failed request is tried again.
    pub retries: u32,
}

impl ClientSpec {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self.load {
            Load::Open { .. } => "open-loop",
            Load::Closed { .. } => "closed-loop",
            Load::Stream { .. } => "stream",
        }
    }
}

/// A machine outside the host that clients run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMachineSpec {
    /// Name of the machine.
    pub name: String,
    /// Rate of its link in each direction, bits per second.
    pub bits_per_s: i64,
    /// The number of its processors.
    pub processors: u32,
    /// Time of a processor for a request before it is sent.
    pub request_cpu: Span,
    /// Time of a processor for each packet.
    pub packet_cpu: Span,
    /// Most connections.
    pub connections_max: u32,
}

/// A kind of requests that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskSpec {
    /// Class of the requests, by number.
    pub class: u32,
    /// Size of the answer, bytes.
    pub reply_bytes: u32,
    /// Frequency of the requests, relative to the client's other kinds.
    pub weight: u32,
}
