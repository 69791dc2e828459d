//! Logs of clients' requests as JMeter writes them (JTL), for the tools that read those.
//!
//! One file for each client that sends requests, and replication; a line is written as soon as a request is over. Columns
//! and attributes are those of JMeter's manual ("Listeners": CSV log format, sample attributes), times in ms. A user is a
//! thread, the client its thread group. What has no meaning here is what JMeter writes where it does not know: no URL, no
//! time idle. Codes and messages of failures are those of its HTTP sampler under Java.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use vcpulab_host::{Span, Table, Time};
use vcpulab_io::{ClientId, ClientSample, Load, Outcome};
use vcpulab_spec::{ClientSpec, Spec};

use crate::error::RunError;

/// Time 0 of a run in a log: 2000-01-01 00:00:00 UTC, ms since 1970.
pub const JTL_EPOCH_MS: i64 = 946_684_800_000;

const COLUMNS: &str = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,\
                       bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect";

/// The place and form of logs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Jtl {
    /// A directory that is there: `CLIENT-0.jtl` and so on are written to it.
    pub directory: PathBuf,
    /// XML instead of CSV?
    pub xml: bool,
    /// Log requests that are over before the warm-up is, too? JMeter knows no warm-up.
    pub warmup: bool,
}

/// The logs of one replication.
pub(crate) struct Logs {
    xml: bool,
    /// Whether requests that are over now are logged.
    open: bool,
    /// Log of each client; `None` for streams.
    logs: Table<ClientId, Option<Log>>,
    failed: Option<RunError>,
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    client: String,
    /// Classes of requests.
    labels: Vec<&'static str>,
}

impl Logs {
    pub fn create(
        spec: &Spec,
        replication: u32,
        jtl: &Jtl,
    ) -> std::result::Result<Rc<RefCell<Self>>, RunError> {
        let logs = spec.clients.iter().map(|client| {
            let streams = matches!(client.load, Load::Stream { .. });
            (!streams).then(|| Log::create(client, spec, replication, jtl)).transpose()
        });
        let logs = logs.collect::<std::result::Result<_, _>>()?;
        Ok(Rc::new(RefCell::new(Logs { xml: jtl.xml, open: jtl.warmup, logs, failed: None })))
    }

    /// Starts the log at the end of the warm-up.
    pub fn begin(&mut self) {
        self.open = true;
    }

    pub fn write(&mut self, sample: &ClientSample) {
        if !self.open || self.failed.is_some() {
            return;
        }
        if let Some(Some(log)) = self.logs.get_mut(sample.client)
            && let Err(error) = log.write(sample, self.xml)
        {
            self.failed = Some(cannot_write(&log.path, &error));
        }
    }

    /// Writes everything that is still held.
    pub fn finish(&mut self) -> std::result::Result<(), RunError> {
        for log in self.logs.iter_mut().flatten() {
            let end = if self.xml { "</testResults>\n" } else { "" };
            let written = log.file.write_all(end.as_bytes()).and_then(|()| log.file.flush());
            if let (Err(error), None) = (written, &self.failed) {
                self.failed = Some(cannot_write(&log.path, &error));
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> RunError {
    RunError::Events { file: path.to_owned(), reason: error.to_string() }
}

impl Log {
    fn create(
        client: &ClientSpec,
        spec: &Spec,
        replication: u32,
        jtl: &Jtl,
    ) -> std::result::Result<Self, RunError> {
        let path = jtl.directory.join(format!("{}-{replication}.jtl", client.name));
        let head = match jtl.xml {
            true => "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testResults version=\"1.2\">",
            false => COLUMNS,
        };
        let create = || {
            let mut file = BufWriter::new(File::create(&path)?);
            writeln!(file, "{head}")?;
            Ok(file)
        };
        let file = create().map_err(|error| cannot_write(&path, &error))?;
        let app = &spec.domains[client.service.domain].apps[client.service.app];
        let labels = app.classes().iter().map(|class| class.name).collect();
        Ok(Log { path, file, client: client.name.clone(), labels })
    }

    fn write(&mut self, sample: &ClientSample, xml: bool) -> Result<()> {
        // As a clock of milliseconds shows it at both ends.
        let at = |time: Time| JTL_EPOCH_MS + (time - Time::ZERO) / Span::from_ms(1);
        let after = |span: Span| at(sample.begun + span) - at(sample.begun);
        let (time, elapsed) = (at(sample.begun), after(sample.ended - sample.begun));
        let (latency, connect) = (after(sample.latency_ns), after(sample.connect_ns));
        let (code, message) = response(sample);
        let success = sample.outcome == Outcome::Answered;
        let label = self.labels[sample.class as usize];
        let (client, thread) = (&self.client, sample.user + 1);
        let ClientSample { received_bytes, sent_bytes, active, active_all, .. } = sample;
        match xml {
            true => writeln!(
                self.file,
                "<sample t=\"{elapsed}\" it=\"0\" lt=\"{latency}\" ct=\"{connect}\" ts=\"{time}\" s=\"{success}\" \
                 lb=\"{label}\" rc=\"{code}\" rm=\"{message}\" tn=\"{client} 1-{thread}\" dt=\"text\" \
                 by=\"{received_bytes}\" sby=\"{sent_bytes}\" ng=\"{active}\" na=\"{active_all}\"/>"
            ),
            false => writeln!(
                self.file,
                "{time},{elapsed},{label},{code},{message},{client} 1-{thread},text,{success},,{received_bytes},\
                 {sent_bytes},{active},{active_all},null,{latency},0,{connect}"
            ),
        }
    }
}

/// Response code and message.
fn response(sample: &ClientSample) -> (&'static str, &'static str) {
    match sample.outcome {
        Outcome::Answered => ("200", "OK"),
        Outcome::Refused => (
            "Non HTTP response code: java.net.ConnectException",
            "Non HTTP response message: Connection refused",
        ),
        Outcome::TimedOut => (
            "Non HTTP response code: java.net.SocketTimeoutException",
            if sample.sent_bytes == 0 {
                "Non HTTP response message: connect timed out"
            } else {
                "Non HTTP response message: Read timed out"
            },
        ),
        Outcome::Reset => (
            "Non HTTP response code: java.net.SocketException",
            "Non HTTP response message: Connection reset",
        ),
        Outcome::NoConnection => (
            "Non HTTP response code: java.net.BindException",
            "Non HTTP response message: Address already in use: connect",
        ),
    }
}
