//! Compiling a kernel.

use super::kind::{AppKind, AppParam};
use super::parts::{READ, script, work};
use crate::script::{AppConfig, DiskAccess, Step};

/// Size of the tree of sources, and of its headers, bytes: Linux 2.6.11 unpacks to some 200 MB, of which `include` is a
/// twentieth.
const TREE: u64 = 200 << 20;
const HEADERS: u64 = 10 << 20;

pub const KIND: AppKind = AppKind {
    name: "kernel-build",
    doc: "Jobs that compile the files of a tree, and end when all are compiled. Its units are files.",
    params: &[
        AppParam::count(
            "jobs",
            "How many compilers run at once (`make -j`).",
            (1, 1024),
            1,
            "make: one job unless told otherwise",
        ),
        AppParam::count(
            "files",
            "How many files there are; each job compiles an equal part, rounded up.",
            (1, 1_000_000),
            1000,
            "assumption: about a thousand, as a default configuration of Linux 2.4 or early 2.6 has",
        ),
        AppParam::cpu(
            "file_cpu",
            "CPU time to compile one file.",
            600_000,
            "assumption: some 260 s for Linux 2.4 at 2.4 GHz, which is the order of Barham et al. 2003 (Figure 3, not looked up), over a thousand files",
        ),
        AppParam::count(
            "headers",
            "How many groups of headers it reads while it compiles a file.",
            (0, 1000),
            4,
            "assumption: a few; single headers come out of the page cache without a wait",
        ),
        AppParam::size(
            "source_size",
            "Size of a source file.",
            1,
            24_576,
            "assumption: seven hundred lines of C",
        ),
        AppParam::size(
            "header_size",
            "Size of a group of headers.",
            1,
            65_536,
            "assumption: some ten headers",
        ),
        AppParam::size(
            "object_size",
            "Size of an object file.",
            1,
            32_768,
            "assumption: code, symbols and relocations of such a file",
        ),
        AppParam::count(
            "page_faults",
            "How many page faults it takes to compile one file.",
            (0, 1_000_000),
            3000,
            "assumption: the compiler is started anew for each file, and its heap of some 10 MB comes page by page",
        ),
        AppParam::size(
            "program_memory",
            "Memory of the compiler's program and of the kernel that all jobs use while they run.",
            0,
            1 << 20,
            "assumption: a quarter of the text of cc1 in gcc 3, some 4 MB, is in use over a time slice",
        ),
        AppParam::size(
            "job_memory",
            "Memory that each job uses while it runs.",
            0,
            2 << 20,
            "assumption: the syntax tree and tables of the function at hand, out of a heap of some 10 MB",
        ),
    ],
    classes: &[],
    build: |args| {
        let headers = args.get_u32("headers");
        let bytes = |name| args.get_u32(name);
        let source = DiskAccess { bytes: bytes("source_size"), file_bytes: TREE, random: true, ..READ };
        let header = DiskAccess { bytes: bytes("header_size"), file_bytes: HEADERS, random: true, ..READ };
        let object = DiskAccess { bytes: bytes("object_size"), file_bytes: TREE, write: true, ..READ };
        let [source, header, object] = [source, header, object]
            .map(|a| DiskAccess { file_bytes: a.file_bytes.max(a.bytes.into()), ..a });
        let phase = work(args.span("file_cpu") / i64::from(headers + 1));
        let faults = Step::PageFaults(bytes("page_faults"));
        let mut steps = vec![faults, Step::Disk(source), phase];
        steps.extend([Step::Disk(header), phase].repeat(headers as usize));
        steps.extend([Step::Disk(object), Step::Done]);
        let mut script = script(args, steps);
        let jobs = args.get_u32("jobs");
        script.repeat(0, bytes("files").div_ceil(jobs));
        script.steps.push(Step::Stop);
        AppConfig {
            tasks: jobs,
            shared_bytes: args.get("program_memory") as u64,
            private_bytes: args.get("job_memory") as u64,
            ..AppConfig::new(script)
        }
    },
};
