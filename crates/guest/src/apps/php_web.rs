//! A web application in PHP, with a database and perhaps a file server.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, RequestClass};
use super::mysql;
use super::nfs;
use super::parts::{KILOBYTE_CPU, READ, SYN_QUEUE, misses, perhaps, request, service, work, work_and_copy};
use crate::script::{AppConfig, Call, DiskAccess, ServiceConfig, Step};

/// A session file on a disk, bytes: a block among those of some thousands of sessions.
const SESSION: DiskAccess = DiskAccess { bytes: 4096, write: true, file_bytes: 64 << 20, ..READ };

/// A script of the site, and all of them, bytes.
const SCRIPT: DiskAccess = DiskAccess { bytes: 4096, random: true, file_bytes: 1 << 20, ..READ };

/// Answer of the second query, bytes: a row with about 1 KB of page text (Devine 2010, section 2.1), and its headers.
const CONTENT_REPLY: u32 = 1300;

/// The computation of a page falls in as many parts: before the scripts, before each query, and before the answer.
const PARTS: i64 = 4;

/// Assumption: of Apache's and PHP's programs and of a worker's heap what a request touches, bytes.
const PROGRAM_MEMORY: u64 = 1 << 20;
const WORKER_MEMORY: u64 = 512 << 10;

pub const KIND: AppKind = AppKind {
    name: "php-web",
    doc: "A web application: worker processes that read scripts, ask a database twice and answer with a page. Its units are pages.",
    params: &[
        AppParam {
            name: "database",
            doc: "The database that it asks.",
            kind: AppParamKind::Service(&["mysql"]),
            default: AppDefault::Required,
            source: "",
        },
        AppParam {
            name: "files",
            doc: "The file server that its scripts are on; none: they are on its own disk.",
            kind: AppParamKind::Service(&["nfs"]),
            default: AppDefault::Absent,
            source: "most sites keep their scripts on their own disk",
        },
        AppParam::count(
            "workers",
            "Worker processes: each has one connection for as long as it lasts.",
            (1, 4096),
            150,
            "Apache 2.2 of Debian and Ubuntu: MaxClients is 150 for prefork",
        ),
        AppParam::count(
            "backlog",
            "Further connections that wait for a worker; what comes on top is not answered.",
            (0, 1_000_000),
            128,
            "Linux: net.core.somaxconn of 128 cuts Apache's ListenBacklog of 511",
        ),
        SYN_QUEUE,
        AppParam::count(
            "requests_max",
            "Requests after which it closes a connection; 0: never.",
            (0, 1_000_000_000),
            100,
            "Apache manual: MaxKeepAliveRequests is 100",
        ),
        AppParam::cpu(
            "page_cpu",
            "CPU time of a page, without the network's own work.",
            8000,
            "assumption: compiling and running a few hundred lines anew for each page takes some milliseconds at 2 to 3 GHz",
        ),
        AppParam::count(
            "scripts",
            "How many files make up the page.",
            (0, 64),
            4,
            "Devine 2010, section 2.1: the page, its configuration, header and footer",
        ),
        AppParam::count(
            "file_calls",
            "How often it asks the file server for each of them.",
            (1, 64),
            1,
            "nfs(5), close-to-open consistency: attributes are asked for at each open; more where names are looked up anew",
        ),
        AppParam::percent(
            "cached",
            "Share of scripts that its page cache has; the file server is still asked whether they changed.",
            100,
            "nfs(5), close-to-open consistency: each open asks for the attributes; the data of an unchanged file stay",
        ),
        KILOBYTE_CPU,
    ],
    classes: &[RequestClass {
        name: "page",
        request_bytes: 250,
        reply_bytes: 5017,
        weight: 1,
        source: "a GET with its usual header lines; Devine 2010, section 2.1: 5017 B",
    }],
    build: |args| {
        let part = work(args.span("page_cpu") / PARTS);
        let rare = misses(args.get("cached"));
        let open = match args.optional_service("files") {
            Some(files) => {
                let ask = |class| Step::Call(request(&nfs::KIND, class, files));
                let calls = vec![ask("getattr"); args.get("file_calls") as usize];
                [calls, perhaps(rare, &[ask("read")])].concat()
            }
            None => perhaps(rare, &[Step::Disk(SCRIPT)]),
        };
        let login = Call { connects: true, ..request(&mysql::KIND, "query", args.service("database")) };
        let content = Call { reply: CONTENT_REPLY, ..login };
        let last = work_and_copy(args.span("page_cpu") / PARTS, args.span("kilobyte_cpu"));
        let steps = [
            vec![part, Step::Disk(SESSION)],
            open.repeat(args.get("scripts") as usize),
            vec![part, Step::Call(login), part, Step::Call(content), last],
        ];
        let workers = args.get_u32("workers");
        let config = ServiceConfig {
            backlog: args.get_u32("backlog"),
            ignores: true,
            syn_queue: args.get_u32("syn_queue"),
            requests_max: args.get_u32("requests_max"),
            ..ServiceConfig::of(workers)
        };
        AppConfig {
            shared_bytes: PROGRAM_MEMORY,
            private_bytes: WORKER_MEMORY,
            ..service(args, workers, config, &[steps.concat()])
        }
    },
};
