//! The mail server of a Windows domain.

use super::active_directory;
use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX, RequestClass};
use super::parts::{READ, misses, perhaps, random_read, request, service, work};
use crate::script::{AppConfig, DiskAccess, ServiceConfig, Step};

/// A page of its database, bytes (Exchange 2007).
const PAGE: u32 = 8192;

/// A message, bytes.
const MESSAGE: u32 = 51_200;

/// Assumption: the parts of the server that each request needs, and a worker's own memory, bytes.
const PROGRAM_MEMORY: u64 = 2 << 20;
const WORKER_MEMORY: u64 = 256 << 10;

const MIX: &str = "LoadGen's heavy profile: 132 tasks a user and day, with 20 messages sent and 80 received (Dell BP1013, Table 3); assumption: the other 32 are 20 looks into folders and 12 into calendars; messages of 50 KB";

pub const KIND: AppKind = AppKind {
    name: "exchange",
    doc: "A mail server: reading, sending, folders and calendars. Its units are tasks.",
    params: &[
        AppParam {
            name: "directory",
            doc: "The directory that knows its users.",
            kind: AppParamKind::Service(&["active-directory"]),
            default: AppDefault::Required,
            source: "",
        },
        AppParam::count(
            "workers",
            "How many tasks it works at at once.",
            (1, 4096),
            64,
            "assumption: enough that none waits for a worker rather than for the disk",
        ),
        AppParam::cpu(
            "read_cpu",
            "CPU time of reading a message or looking into a folder or calendar.",
            6000,
            "assumption: a few remote calls, each of some database statements",
        ),
        AppParam::cpu(
            "send_cpu",
            "CPU time of sending a message.",
            15_000,
            "assumption: submission, categorising and delivery, about three times a read",
        ),
        AppParam::count(
            "pages",
            "How many database pages a task touches.",
            (0, 1000),
            8,
            "assumption: a message of 50 KB in pages of 8 KB, and its entry in a folder",
        ),
        AppParam::percent(
            "cached",
            "Share of pages that are in memory.",
            90,
            "assumption: recent mail is, the rest of a mailbox is not",
        ),
        AppParam {
            name: "database_size",
            doc: "Size of all mailboxes, over which those reads spread that go to the disk.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(20 << 30),
            source: "assumption: 100 mailboxes of 200 MB",
        },
    ],
    classes: &[
        RequestClass { name: "read", request_bytes: 500, reply_bytes: MESSAGE, weight: 80, source: MIX },
        RequestClass { name: "send", request_bytes: MESSAGE, reply_bytes: 300, weight: 20, source: MIX },
        RequestClass { name: "browse", request_bytes: 500, reply_bytes: 8000, weight: 20, source: MIX },
        RequestClass { name: "calendar", request_bytes: 500, reply_bytes: 8000, weight: 12, source: MIX },
    ],
    build: |args| {
        let page = perhaps(misses(args.get("cached")), &[random_read(PAGE, args.get("database_size"))]);
        let pages = page.repeat(args.get("pages") as usize);
        let look = [vec![work(args.span("read_cpu"))], pages.clone()].concat();
        let recipient = Step::Call(request(&active_directory::KIND, "lookup", args.service("directory")));
        // Its log is written through: who waits for the write waits for the disk.
        let log =
            Step::Disk(DiskAccess { bytes: MESSAGE, write: true, direct: true, file_bytes: 1 << 30, ..READ });
        let send = [vec![recipient, work(args.span("send_cpu"))], pages, vec![log]].concat();
        let config = ServiceConfig::of(5000);
        AppConfig {
            shared_bytes: PROGRAM_MEMORY,
            private_bytes: WORKER_MEMORY,
            ..service(args, args.get_u32("workers"), config, &[look.clone(), send, look.clone(), look])
        }
    },
};
