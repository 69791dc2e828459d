//! Every event of a run, written to a file as it happens.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use vcpulab_host::{
    Acted, HostState, IoStep, Observer, PcpuId, RunState, StateRow, Switch, Time, VcpuId, WakeCause,
};

use crate::counters::Meter;
use crate::tables::{EventRow, Record};

/// Events held in memory before they are written.
const ROWS_HELD: usize = 1 << 16;

/// Writes events to an Arrow file.
pub struct EventFile {
    rows: Vec<EventRow>,
    file: FileWriter<BufWriter<File>>,
    /// The error after which nothing is written any more.
    failed: Option<String>,
}

impl EventFile {
    /// Creates the file.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| error.to_string())?;
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
        let options = options.map_err(|error| error.to_string())?;
        let schema = EventRow::batch(&[]).schema();
        let file = FileWriter::try_new_with_options(BufWriter::new(file), &schema, options);
        let file = file.map_err(|error| error.to_string())?;
        Ok(EventFile { rows: Vec::with_capacity(ROWS_HELD), file, failed: None })
    }

    /// Adds an event; an error of writing is reported at the end.
    pub fn push(&mut self, row: EventRow) {
        self.rows.push(row);
        if self.rows.len() == ROWS_HELD {
            self.write();
        }
    }

    #[cold]
    fn write(&mut self) {
        if self.failed.is_none() {
            let written = self.file.write(&EventRow::batch(&self.rows));
            self.failed = written.err().map(|error| error.to_string());
        }
        self.rows.clear();
    }

    /// Writes what is still held, and ends the file.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> Result<(), String> {
        self.write();
        match self.failed {
            Some(failed) => Err(failed),
            None => self.file.finish().map_err(|error| error.to_string()),
        }
    }
}

/// Records the events of a host.
pub struct Recorder {
    events: EventFile,
    /// Whether measuring has begun.
    begun: bool,
}

impl Recorder {
    /// Creates the file.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path) -> Result<Self, String> {
        Ok(Recorder { events: EventFile::create(path)?, begun: false })
    }

    /// Starts with the state of the host.
    fn begin(&mut self, host: &HostState) {
        self.begun = true;
        let now = host.now();
        for p in (0..host.pcpu_count()).map(PcpuId) {
            let (domain, vcpu) = host.name(host.executes(p));
            let at = row(now, "switch");
            self.push(EventRow { pcpu: Some(p.0), domain: Some(domain), vcpu: Some(vcpu), ..at });
        }
        for v in host.all_guest_vcpus() {
            self.runstate(host, v);
        }
    }

    fn finish(mut self, host: &HostState) -> Result<(), String> {
        self.push(row(host.now(), "end"));
        self.events.finish()
    }

    fn runstate(&mut self, host: &HostState, v: VcpuId) {
        let (pcpu, what) = (Some(host.processor(v).0), Some(host.runstate(v).name()));
        let at = EventRow { pcpu, what, ..row(host.now(), "runstate") };
        self.push(of(at, host, v));
    }

    fn push(&mut self, row: EventRow) {
        if self.begun {
            self.events.push(row);
        }
    }
}

fn row(time: Time, kind: &'static str) -> EventRow {
    EventRow { time_ns: time.ns(), kind, ..EventRow::default() }
}

fn of(row: EventRow, host: &HostState, v: VcpuId) -> EventRow {
    let (domain, vcpu) = host.name(v);
    EventRow { domain: Some(domain), vcpu: Some(vcpu), ..row }
}

fn by(row: EventRow, host: &HostState, v: VcpuId) -> EventRow {
    let (domain, vcpu) = host.name(v);
    EventRow { by_domain: Some(domain), by_vcpu: Some(vcpu), ..row }
}

/// An observer of a whole run.
pub trait Measuring: Observer {
    /// Starts to count; must be called once before a host runs.
    fn reset(&mut self, host: &HostState);
    /// The warm-up is over: forgets all counts, and starts to record.
    fn begin(&mut self, host: &HostState);
    /// The counters.
    fn meter(&self) -> &Meter;
    /// The counters, to take samples from.
    fn meter_mut(&mut self) -> &mut Meter;
    /// The run ends.
    ///
    /// # Errors
    /// The error of writing.
    fn finish(self, host: &HostState) -> Result<(), String>;
}

impl Measuring for Meter {
    fn reset(&mut self, host: &HostState) {
        Meter::reset(self, host);
    }

    fn begin(&mut self, host: &HostState) {
        Meter::reset(self, host);
    }

    fn meter(&self) -> &Meter {
        self
    }

    fn meter_mut(&mut self) -> &mut Meter {
        self
    }

    fn finish(self, _host: &HostState) -> Result<(), String> {
        Ok(())
    }
}

/// A meter, and a recorder beside it.
pub struct Traced {
    /// The meter, which counts.
    pub meter: Meter,
    /// The recorder, which writes the events down.
    pub recorder: Recorder,
}

impl Measuring for Traced {
    fn reset(&mut self, host: &HostState) {
        self.meter.reset(host);
    }

    fn begin(&mut self, host: &HostState) {
        self.meter.reset(host);
        self.recorder.begin(host);
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }

    fn finish(self, host: &HostState) -> Result<(), String> {
        self.recorder.finish(host)
    }
}

impl Observer for Traced {
    const WANTS_STATE: bool = true;
    const WANTS_IO: bool = true;

    fn wanted_runstates(&self) -> &[RunState] {
        &[RunState::Running, RunState::Blocked, RunState::Offline, RunState::Runnable]
    }

    fn switched(&mut self, host: &HostState, switch: Switch) {
        self.meter.switched(host, switch);
        let at = row(switch.time, "switch");
        let at = EventRow { pcpu: Some(switch.pcpu.0), value: Some(switch.waited_ns.ns()), ..at };
        self.recorder.push(by(of(at, host, switch.to), host, switch.from));
    }

    fn decided(&mut self, host: &HostState, p: PcpuId) {
        self.meter.decided(host, p);
        let at = EventRow { pcpu: Some(p.0), ..row(host.now(), "decision") };
        self.recorder.push(of(at, host, host.executes(p)));
    }

    fn woke(&mut self, host: &HostState, v: VcpuId, cause: WakeCause, waker: Option<VcpuId>) {
        self.meter.woke(host, v, cause, waker);
        let at = of(EventRow { what: Some(cause.name()), ..row(host.now(), "wake") }, host, v);
        self.recorder.push(match waker {
            Some(waker) => by(at, host, waker),
            None => at,
        });
    }

    fn runstate_changed(&mut self, host: &HostState, v: VcpuId) {
        self.meter.runstate_changed(host, v);
        self.recorder.runstate(host, v);
    }

    fn affinity_changed(&mut self, host: &HostState, v: VcpuId) {
        self.meter.affinity_changed(host, v);
    }

    fn busy(&mut self, host: &HostState, p: PcpuId) {
        self.meter.busy(host, p);
    }

    fn timer_due(&mut self, host: &HostState, p: PcpuId, token: u32) {
        let at = EventRow { pcpu: Some(p.0), value: Some(i64::from(token)), ..row(host.now(), "timer") };
        self.recorder.push(at);
    }

    fn migrated(&mut self, host: &HostState, v: VcpuId, from: PcpuId, to: PcpuId) {
        self.meter.migrated(host, v, from, to);
        let at = row(host.now(), "migration");
        let at = EventRow { pcpu: Some(to.0), value: Some(i64::from(from.0)), ..at };
        self.recorder.push(of(at, host, v));
    }

    fn acted(&mut self, host: &HostState, acted: Acted) {
        self.meter.acted(host, acted);
    }

    fn state(&mut self, state: StateRow) {
        let at = row(state.time, "state");
        let StateRow { domain, vcpu, key, value, .. } = state;
        let (domain, vcpu) = (Some(domain), Some(vcpu));
        self.recorder.push(EventRow { domain, vcpu, what: Some(key), value: Some(value), ..at });
    }

    fn io_step(&mut self, host: &HostState, step: IoStep) {
        let IoStep { kind, domain, id, value } = step;
        let domain = Some(host.domain_number(domain));
        let at = row(host.now(), "io");
        self.recorder.push(EventRow {
            domain,
            what: Some(kind.name()),
            value: Some(value),
            id: Some(id),
            ..at
        });
    }
}
