//! The portal of a Windows domain.

use super::active_directory;
use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, RequestClass};
use super::mssql;
use super::parts::{perhaps, request, service, work};
use crate::script::{AppConfig, ServiceConfig, Step};

/// Assumption: of the web server's, the runtime's and the portal's programs and of a request's heap what a page
/// touches, bytes.
const PROGRAM_MEMORY: u64 = 2 << 20;
const WORKER_MEMORY: u64 = 1 << 20;

const SESSION: &str = "Devine 2010, section 2.3: a session opens the main site, creates a table and uploads a document, all counted alike; assumption: the sizes";

pub const KIND: AppKind = AppKind {
    name: "moss",
    doc: "A portal whose pages and documents are in a database, and whose users are in a directory. Its units are requests.",
    params: &[
        AppParam {
            name: "database",
            doc: "The database that all content is in.",
            kind: AppParamKind::Service(&["mssql"]),
            default: AppDefault::Required,
            source: "",
        },
        AppParam {
            name: "directory",
            doc: "The directory that knows its users.",
            kind: AppParamKind::Service(&["active-directory"]),
            default: AppDefault::Required,
            source: "",
        },
        AppParam::count(
            "workers",
            "How many requests it works at at once.",
            (1, 4096),
            50,
            "ASP.NET 2.0: 12 × processors is recommended, 100 a processor the most; assumption: 50 for two",
        ),
        AppParam::cpu(
            "page_cpu",
            "CPU time of a page.",
            20_000,
            "assumption: a page of many parts that a managed runtime puts together takes some ten milliseconds at 2 to 3 GHz",
        ),
        AppParam::cpu(
            "change_cpu",
            "CPU time of creating a table, on top of the page that follows.",
            20_000,
            "assumption: as much as a page",
        ),
        AppParam::cpu(
            "upload_cpu",
            "CPU time of taking a document, on top of the page that follows.",
            10_000,
            "assumption: half of a page; copying 100 KB is little beside it",
        ),
        AppParam::count(
            "queries",
            "How many queries a page takes.",
            (0, 1000),
            10,
            "assumption: one for each part of a page, most being cached",
        ),
        AppParam::count(
            "changes",
            "How many rows creating a table writes.",
            (0, 1000),
            5,
            "assumption: the list, its fields and its views",
        ),
        AppParam::percent(
            "logons",
            "Share of requests for which the directory checks the user.",
            10,
            "assumption: integrated authentication checks each connection, and connections last some requests",
        ),
    ],
    classes: &[
        RequestClass { name: "browse", request_bytes: 600, reply_bytes: 60_000, weight: 1, source: SESSION },
        RequestClass {
            name: "create-table",
            request_bytes: 3000,
            reply_bytes: 30_000,
            weight: 1,
            source: SESSION,
        },
        RequestClass {
            name: "upload",
            request_bytes: 102_400,
            reply_bytes: 30_000,
            weight: 1,
            source: SESSION,
        },
    ],
    build: |args| {
        let ask = |class| Step::Call(request(&mssql::KIND, class, args.service("database")));
        let logon = Step::Call(request(&active_directory::KIND, "logon", args.service("directory")));
        let logon = perhaps(args.get("logons") * 10_000, &[logon]);
        let half = work(args.span("page_cpu") / 2);
        let queries = [ask("read")].repeat(args.get("queries") as usize);
        let page = [vec![half], queries, vec![half]].concat();
        let changes = [ask("write")].repeat(args.get("changes") as usize);
        let create = [vec![work(args.span("change_cpu"))], changes].concat();
        let upload = vec![work(args.span("upload_cpu")), ask("store")];
        let class = |first: Vec<Step>| [logon.clone(), first, page.clone()].concat();
        let config = ServiceConfig { backlog: 1000, ..ServiceConfig::of(5000) };
        AppConfig {
            shared_bytes: PROGRAM_MEMORY,
            private_bytes: WORKER_MEMORY,
            ..service(
                args,
                args.get_u32("workers"),
                config,
                &[class(Vec::new()), class(create), class(upload)],
            )
        }
    },
};
