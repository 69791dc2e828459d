//! A recorded run as a trace that Perfetto opens: <https://ui.perfetto.dev>.
//!
//! The format is Perfetto's own: protobuf, a stream of packets, events on tracks
//! (<https://perfetto.dev/docs/reference/synthetic-track-event>). Declared here is the part of it that is written, with the tags
//! of Perfetto's public `protos/perfetto/trace`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use prost::Message;

/// A trace is a sequence of these, each in field 1 of `Trace`.
#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

/// The kinds of a [`TrackEvent`].
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<EventName>,
}

#[derive(Clone, PartialEq, Message)]
struct EventName {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

/// Flags of a packet: names interned before are forgotten; names interned before are needed.
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// A vCPU (domain −1: idle), a domain (vCPU −1), a pCPU (domain −1, vCPU its number).
type Thing = (i64, i64);

/// Writes what an [`EventFile`](crate::EventFile) holds as a Perfetto trace: a track for each pCPU (who runs), one for
/// each vCPU (its runstates) under its domain, counters of the scheduler's state, and flows from the vCPU that wakes another
/// to that one's wait and execution. `names` are the domains' by their numbers.
///
/// # Errors
/// What cannot be read or written.
pub fn export(events: &Path, names: &BTreeMap<i64, String>, out: &Path) -> Result<(), String> {
    let of = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(events).map_err(|error| of(events, &error))?;
    let batches = FileReader::try_new(BufReader::new(file), None).map_err(|error| of(events, &error))?;
    let file = File::create(out).map_err(|error| of(out, &error))?;
    let mut writer = Writer::new(BufWriter::new(file), names);
    for batch in batches {
        let batch = batch.map_err(|error| of(events, &error))?;
        let columns = Columns::of(&batch).ok_or_else(|| of(events, &"not a recorded run"))?;
        for i in 0..batch.num_rows() {
            writer.event(&columns.at(i)).map_err(|error| of(out, &error))?;
        }
    }
    writer.out.flush().map_err(|error| of(out, &error))
}

/// One event, read back.
struct Event<'a> {
    time_ns: i64,
    kind: &'a str,
    pcpu: Option<u32>,
    whose: Option<Thing>,
    by: Option<Thing>,
    what: Option<&'a str>,
    value: Option<i64>,
    id: Option<u64>,
}

struct Columns<'a> {
    time_ns: &'a arrow_array::Int64Array,
    kind: StringArray,
    pcpu: &'a arrow_array::UInt32Array,
    numbers: [&'a arrow_array::Int64Array; 5],
    what: StringArray,
    id: &'a arrow_array::UInt64Array,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let numbers = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        // Texts of other writers have wider offsets.
        let text = |name: &str| {
            let column = batch.column_by_name(name)?;
            let wide = || column.as_string_opt::<i64>().map(|wide| wide.iter().collect());
            column.as_string_opt::<i32>().cloned().or_else(wide)
        };
        Some(Columns {
            time_ns: numbers("time_ns")?,
            kind: text("kind")?,
            pcpu: batch.column_by_name("pcpu")?.as_primitive_opt::<UInt32Type>()?,
            numbers: [
                numbers("domain")?,
                numbers("vcpu")?,
                numbers("by_domain")?,
                numbers("by_vcpu")?,
                numbers("value")?,
            ],
            what: text("what")?,
            id: batch.column_by_name("id")?.as_primitive_opt::<UInt64Type>()?,
        })
    }

    fn at(&self, i: usize) -> Event<'_> {
        let [domain, vcpu, by_domain, by_vcpu, value] =
            self.numbers.map(|column| column.is_valid(i).then(|| column.value(i)));
        let thing = |domain: Option<i64>, vcpu: Option<i64>| Some((domain?, vcpu.unwrap_or(-1)));
        Event {
            time_ns: self.time_ns.value(i),
            kind: self.kind.value(i),
            pcpu: self.pcpu.is_valid(i).then(|| self.pcpu.value(i)),
            whose: thing(domain, vcpu),
            by: thing(by_domain, by_vcpu),
            what: self.what.is_valid(i).then(|| self.what.value(i)),
            value,
            id: self.id.is_valid(i).then(|| self.id.value(i)),
        }
    }
}

/// What a vCPU's track shows.
#[derive(Default)]
struct Vcpu {
    state: Option<String>,
    /// The flow that leads to its next execution.
    flow: Option<u64>,
}

struct Writer<'a, W: Write> {
    out: W,
    names: &'a BTreeMap<i64, String>,
    /// Track of a group, a thing, or a counter of it, by its name and parent.
    tracks: BTreeMap<(u64, String), u64>,
    interned: BTreeMap<String, u64>,
    vcpus: BTreeMap<Thing, Vcpu>,
    /// By pCPU: does it show an execution?
    runs: BTreeMap<u32, bool>,
    flows: u64,
    runnable: i64,
    buffer: Vec<u8>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(out: W, names: &'a BTreeMap<i64, String>) -> Self {
        Writer {
            out,
            names,
            tracks: BTreeMap::new(),
            interned: BTreeMap::new(),
            vcpus: BTreeMap::new(),
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
            let pcpus = self.track(0, "pCPUs", false)?;
            self.count(time, pcpus, "vCPUs that wait", self.runnable)?;
        }
        Ok(())
    }

    /// Closes whatever is open.
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
        let group = self.track(0, "pCPUs", false)?;
        self.track(group, &format!("pCPU {p}"), false)
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

    /// The track of that name, described when it is first needed. (A parent of 0: none.)
    fn track(&mut self, parent: u64, name: &str, counts: bool) -> std::io::Result<u64> {
        if let Some(&uuid) = self.tracks.get(&(parent, name.to_owned())) {
            return Ok(uuid);
        }
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.insert((parent, name.to_owned()), uuid);
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: (parent != 0).then_some(parent),
            counter: counts.then_some(CounterDescriptor {}),
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
