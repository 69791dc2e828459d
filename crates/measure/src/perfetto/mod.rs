//! A recorded run as a trace that Perfetto opens: <https://ui.perfetto.dev>.
//!
//! The format is Perfetto's own: protobuf, a stream of packets, events on tracks
//! (<https://perfetto.dev/docs/reference/synthetic-track-event>).

mod events;
mod proto;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use arrow_ipc::reader::FileReader;
use prost::Message;

use events::{Columns, Event, Thing};
use proto::{
    BY_RANK, COUNTER, CounterDescriptor, DebugAnnotation, EventName, INSTANT, InternedData, NEEDS_STATE,
    SLICE_BEGIN, SLICE_END, STATE_CLEARED, Trace, TracePacket, TrackDescriptor, TrackEvent,
};

/// A slice of a track that no event is on: the track, the begin and the end, ns, and the name.
pub type Slice = (String, i64, i64, String);

/// Writes the events of an [`EventFile`](crate::EventFile) as a Perfetto trace: a track for each pCPU (the vCPU that runs), one for
/// each vCPU (its runstates) under its domain, counters of the scheduler's state, and flows from the vCPU that wakes another
/// to that one's wait and execution. `names` are the domains' by their numbers; `places` are the groups that each pCPU is in,
/// the largest first, such as its node and its core; `slices` stand on tracks of their own.
///
/// # Errors
/// The error of reading or writing.
pub fn export(
    events: &Path,
    names: &BTreeMap<i64, String>,
    places: &[Vec<String>],
    slices: &[Slice],
    out: &Path,
) -> Result<(), String> {
    let of = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(events).map_err(|error| of(events, &error))?;
    let batches = FileReader::try_new(BufReader::new(file), None).map_err(|error| of(events, &error))?;
    let file = File::create(out).map_err(|error| of(out, &error))?;
    let mut writer = Writer::new(BufWriter::new(file), names, places);
    for batch in batches {
        let batch = batch.map_err(|error| of(events, &error))?;
        let columns = Columns::of(&batch).ok_or_else(|| of(events, &"not a recorded run"))?;
        for i in 0..batch.num_rows() {
            writer.event(&columns.at(i)).map_err(|error| of(out, &error))?;
        }
    }
    for slice in slices {
        writer.slice(slice).map_err(|error| of(out, &error))?;
    }
    writer.out.flush().map_err(|error| of(out, &error))
}

/// The state that a vCPU's track shows.
#[derive(Default)]
struct Vcpu {
    state: Option<String>,
    /// The flow that leads to its next execution.
    flow: Option<u64>,
}

struct Writer<'a, W: Write> {
    out: W,
    names: &'a BTreeMap<i64, String>,
    /// By pCPU: the groups that it is in, the largest first.
    places: &'a [Vec<String>],
    /// Track of a group, a thing, or a counter of it, by its name and parent.
    tracks: BTreeMap<(u64, String), u64>,
    interned: BTreeMap<String, u64>,
    vcpus: BTreeMap<Thing, Vcpu>,
    /// By pCPU: its track.
    pcpus: BTreeMap<u32, u64>,
    /// By pCPU: whether its track shows an execution.
    runs: BTreeMap<u32, bool>,
    flows: u64,
    runnable: i64,
    buffer: Vec<u8>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(out: W, names: &'a BTreeMap<i64, String>, places: &'a [Vec<String>]) -> Self {
        Writer {
            out,
            names,
            places,
            tracks: BTreeMap::new(),
            interned: BTreeMap::new(),
            vcpus: BTreeMap::new(),
            pcpus: BTreeMap::new(),
            runs: BTreeMap::new(),
            flows: 0,
            runnable: 0,
            buffer: Vec::new(),
        }
    }

    fn event(&mut self, event: &Event<'_>) -> std::io::Result<()> {
        let time = event.time_ns;
        match (event.kind, event.whose, event.what) {
            ("switch", Some(to), _) => {
                let pcpu = event.pcpu.unwrap_or(0);
                let track = self.pcpu(pcpu)?;
                if self.runs.insert(pcpu, to.0 >= 0) == Some(true) {
                    self.put(time, track, SLICE_END, None, |_| ())?;
                }
                if to.0 >= 0 {
                    let name = self.name(to);
                    self.put(time, track, SLICE_BEGIN, Some(&name), |_| ())?;
                }
            }
            ("runstate", Some(vcpu), Some(state)) => self.runstate(time, vcpu, state)?,
            ("wake", Some(vcpu), Some(cause)) => {
                if let Some(by) = event.by {
                    self.flows += 1;
                    let (flow, track) = (self.flows, self.vcpu(by)?);
                    let name = format!("wakes {} ({cause})", self.name(vcpu));
                    self.put(time, track, INSTANT, Some(&name), |event| event.flow_ids.push(flow))?;
                    self.vcpus.entry(vcpu).or_default().flow = Some(flow);
                }
            }
            ("migration", Some(vcpu), _) => {
                let track = self.vcpu(vcpu)?;
                let name = format!("to pCPU {}", event.pcpu.unwrap_or(0));
                self.put(time, track, INSTANT, Some(&name), |_| ())?;
            }
            ("timer", ..) => {
                let track = self.pcpu(event.pcpu.unwrap_or(0))?;
                self.put(time, track, INSTANT, Some("scheduler's timer"), |_| ())?;
            }
            ("lost", ..) => {
                let track = self.pcpu(event.pcpu.unwrap_or(0))?;
                self.put(time, track, INSTANT, Some("records are missing until here"), |_| ())?;
            }
            ("io", Some((domain, _)), Some(step)) => {
                let track = self.thing((domain, -1))?;
                let values = [("id", event.id.map(|id| id as i64)), ("value", event.value)];
                self.put(time, track, INSTANT, Some(step), |event| {
                    let annotation = |(name, value): (&str, Option<i64>)| DebugAnnotation {
                        name: Some(name.to_owned()),
                        int_value: value,
                    };
                    event.debug_annotations.extend(values.map(annotation));
                })?;
            }
            ("state", Some(thing), Some(key)) => {
                let track = self.thing(thing)?;
                self.count(time, track, key, event.value.unwrap_or(0))?;
            }
            ("end", ..) => self.end(time)?,
            _ => {}
        }
        Ok(())
    }

    fn runstate(&mut self, time: i64, vcpu: Thing, state: &str) -> std::io::Result<()> {
        let track = self.vcpu(vcpu)?;
        let shown = self.vcpus.entry(vcpu).or_default();
        if shown.state.as_deref() == Some(state) {
            return Ok(());
        }
        let (flow, runs) = (shown.flow, state == "running");
        if runs {
            shown.flow = None;
        }
        let before = shown.state.replace(state.to_owned());
        if before.is_some() {
            self.put(time, track, SLICE_END, None, |_| ())?;
        }
        self.put(time, track, SLICE_BEGIN, Some(state), |event| match flow {
            Some(flow) if runs => event.terminating_flow_ids.push(flow),
            Some(flow) if state == "runnable" => event.flow_ids.push(flow),
            _ => {}
        })?;
        let waits = |state: Option<&str>| i64::from(state == Some("runnable"));
        let change = waits(Some(state)) - waits(before.as_deref());
        if change != 0 {
            self.runnable += change;
            let pcpus = self.pcpus()?;
            self.count(time, pcpus, "vCPUs that wait", self.runnable)?;
        }
        Ok(())
    }

    fn slice(&mut self, (track, begin_ns, end_ns, name): &Slice) -> std::io::Result<()> {
        let track = self.track(0, track, false)?;
        self.put(*begin_ns, track, SLICE_BEGIN, Some(name), |_| ())?;
        self.put(*end_ns, track, SLICE_END, None, |_| ())
    }

    /// Closes all open slices.
    fn end(&mut self, time: i64) -> std::io::Result<()> {
        for vcpu in
            self.vcpus.iter().filter(|(_, shown)| shown.state.is_some()).map(|(&v, _)| v).collect::<Vec<_>>()
        {
            let track = self.vcpu(vcpu)?;
            self.put(time, track, SLICE_END, None, |_| ())?;
        }
        for pcpu in self.runs.iter().filter(|(_, runs)| **runs).map(|(&p, _)| p).collect::<Vec<_>>() {
            let track = self.pcpu(pcpu)?;
            self.put(time, track, SLICE_END, None, |_| ())?;
        }
        Ok(())
    }

    fn name(&self, (domain, vcpu): Thing) -> String {
        let domain = self.names.get(&domain).cloned().unwrap_or_else(|| domain.to_string());
        format!("{domain} vCPU {vcpu}")
    }

    fn pcpu(&mut self, p: u32) -> std::io::Result<u64> {
        if let Some(&track) = self.pcpus.get(&p) {
            return Ok(track);
        }
        let mut group = self.pcpus()?;
        let path = self.places.get(p as usize).map_or(&[][..], Vec::as_slice);
        for depth in 1..=path.len() {
            // Groups stand in the order of their first pCPUs.
            let first = self.places.iter().position(|other| other.starts_with(&path[..depth]));
            group = self.described(group, &path[depth - 1], self.ordered(first))?;
        }
        let own = TrackDescriptor { child_ordering: None, ..self.ordered(Some(p as usize)) };
        let track = self.described(group, &format!("pCPU {p}"), own)?;
        self.pcpus.insert(p, track);
        Ok(track)
    }

    /// The track above those of pCPUs.
    fn pcpus(&mut self) -> std::io::Result<u64> {
        self.described(0, "pCPUs", self.ordered(None))
    }

    /// A track of this rank among its siblings whose children have ranks too; on a flat host nothing has one.
    fn ordered(&self, rank: Option<usize>) -> TrackDescriptor {
        match self.places {
            [] => TrackDescriptor::default(),
            _ => TrackDescriptor {
                child_ordering: Some(BY_RANK),
                sibling_order_rank: rank.map(|rank| rank as i32),
                ..TrackDescriptor::default()
            },
        }
    }

    fn vcpu(&mut self, vcpu: Thing) -> std::io::Result<u64> {
        let group = self.thing((vcpu.0, -1))?;
        self.track(group, &self.name(vcpu), false)
    }

    fn thing(&mut self, thing: Thing) -> std::io::Result<u64> {
        match thing {
            (-1, pcpu) => self.pcpu(u32::try_from(pcpu).unwrap_or(0)),
            (domain, -1) => {
                let name = self.names.get(&domain).cloned().unwrap_or_else(|| domain.to_string());
                self.track(0, &format!("domain {name}"), false)
            }
            vcpu => self.vcpu(vcpu),
        }
    }

    fn count(&mut self, time: i64, of: u64, name: &str, value: i64) -> std::io::Result<()> {
        let track = self.track(of, name, true)?;
        self.put(time, track, COUNTER, None, |event| event.counter_value = Some(value))
    }

    /// The track of that name. (A parent of 0: none.)
    fn track(&mut self, parent: u64, name: &str, counts: bool) -> std::io::Result<u64> {
        let counter = counts.then_some(CounterDescriptor {});
        self.described(parent, name, TrackDescriptor { counter, ..TrackDescriptor::default() })
    }

    /// The track of that name, which is described so when it is first needed.
    fn described(&mut self, parent: u64, name: &str, so: TrackDescriptor) -> std::io::Result<u64> {
        if let Some(&uuid) = self.tracks.get(&(parent, name.to_owned())) {
            return Ok(uuid);
        }
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.insert((parent, name.to_owned()), uuid);
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: (parent != 0).then_some(parent),
            ..so
        };
        // The first packet of all clears what the reader knows.
        let flags = (uuid == 1).then_some(STATE_CLEARED);
        self.packet(TracePacket {
            track_descriptor: Some(descriptor),
            sequence_flags: flags,
            ..TracePacket::default()
        })?;
        Ok(uuid)
    }

    fn put(
        &mut self,
        time: i64,
        track: u64,
        kind: i32,
        name: Option<&str>,
        more: impl FnOnce(&mut TrackEvent),
    ) -> std::io::Result<()> {
        let mut packet = TracePacket {
            timestamp: Some(time as u64),
            sequence_flags: Some(NEEDS_STATE),
            ..TracePacket::default()
        };
        let mut event = TrackEvent { kind: Some(kind), track_uuid: Some(track), ..TrackEvent::default() };
        if let Some(name) = name {
            event.name_iid = Some(match self.interned.get(name) {
                Some(&iid) => iid,
                None => {
                    let iid = self.interned.len() as u64 + 1;
                    self.interned.insert(name.to_owned(), iid);
                    let named = EventName { iid: Some(iid), name: Some(name.to_owned()) };
                    packet.interned_data = Some(InternedData { event_names: vec![named] });
                    iid
                }
            });
        }
        more(&mut event);
        packet.track_event = Some(event);
        self.packet(packet)
    }

    fn packet(&mut self, mut packet: TracePacket) -> std::io::Result<()> {
        packet.trusted_packet_sequence_id = Some(1);
        // Traces put one after the other are one trace.
        self.buffer.clear();
        let trace = Trace { packet: vec![packet] };
        trace.encode(&mut self.buffer).expect("a vector has room");
        self.out.write_all(&self.buffer)
    }
}
