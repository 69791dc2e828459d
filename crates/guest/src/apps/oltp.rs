//! A database under a load generator, both in the same domain.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX};
use super::parts::{READ, perhaps, random_read, script, work};
use crate::script::{AppConfig, DiskAccess, Step};

/// Steps of a transaction of sysbench (its manual, test mode `oltp`, defaults): selects of one row and of ranges
/// of 100 rows; two updates, and a row that is deleted and inserted again.
const POINTS: usize = 10;
const RANGES: usize = 4;
const RANGE_ROWS: i64 = 100;
const WRITES: usize = 4;
const ROWS_WRITTEN: i64 = 3;

/// Rows per hot row (the same place, distribution `special`): 1 % of the rows get 75 % of the picks.
const HOT_ROWS: i64 = 100;
const HOT_PPM: i64 = 750_000;
const COLD_PPM: i64 = 1_000_000 - HOT_PPM;

/// A page of InnoDB, bytes.
const PAGE: u32 = 16_384;

/// The redo log: two files of 5 MB by default (MySQL 5.5 manual), bytes.
const LOG: u64 = 10 << 20;

/// Assumption: the parts of the server's program and of the pages that every transaction needs, and a session's own
/// buffers, bytes.
const PROGRAM_MEMORY: u64 = 1 << 20;
const SESSION_MEMORY: u64 = 256 << 10;

/// The lock that stands for the rows which two transactions both want.
const CONTENDED_ROWS: u32 = 1;

pub const KIND: AppKind = AppKind {
    name: "oltp",
    doc: "A database and its load generator: transactions of 18 statements, with a log that is flushed at each commit. Its units are transactions.",
    params: &[
        AppParam::count(
            "threads",
            "How many transactions run at once.",
            (1, 4096),
            4,
            "Venkatesh 2015, Table 3: 4 threads",
        ),
        AppParam::count(
            "rows",
            "How many rows the table has.",
            (1, 1_000_000_000),
            10_000,
            "sysbench manual: oltp-table-size is 10000 unless told otherwise",
        ),
        AppParam {
            name: "row_size",
            doc: "What a row takes in the table and its index.",
            kind: AppParamKind::Size { min: 1, max: 65_536 },
            default: AppDefault::Value(240),
            source: "sysbench manual: 188 B in four columns; assumption: 52 B for record headers, index entry and free space",
        },
        AppParam {
            name: "buffer_pool",
            doc: "Memory in which the database keeps pages of the table.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(128 << 20),
            source: "MySQL 5.5 manual: innodb_buffer_pool_size is 128 MB unless told otherwise",
        },
        AppParam::cpu(
            "statement_cpu",
            "CPU time of a statement on one row, in generator and server together.",
            200,
            "assumption: some ten thousand such statements a second on a 2 GHz core, both ends of the connection included",
        ),
        AppParam::cpu(
            "range_cpu",
            "CPU time that a statement on a range of 100 rows takes on top.",
            200,
            "assumption: two thousand cycles for each row to read, sort and send",
        ),
        AppParam::size(
            "log_size",
            "What a transaction writes to the log.",
            1,
            2048,
            "assumption: four changed rows of some 300 B each, in whole blocks of 512 B",
        ),
        AppParam {
            name: "flush",
            doc: "Does a commit wait until its log is on the disk?",
            kind: AppParamKind::Flag,
            default: AppDefault::Value(1),
            source: "MySQL 5.5 manual: innodb_flush_log_at_trx_commit is 1 unless told otherwise",
        },
    ],
    classes: &[],
    build: |args| {
        let (rows, table) = (args.get("rows"), args.get("rows") * args.get("row_size"));
        let statement = work(args.span("statement_cpu"));
        let range = work(args.span("statement_cpu") + args.span("range_cpu"));
        let page = perhaps(page_miss_ppm(table, args.get("buffer_pool")), &[random_read(PAGE, table)]);
        let pages_of_range = (RANGE_ROWS * args.get("row_size") / i64::from(PAGE) + 1).min(64) as usize;

        let begin = vec![statement];
        let point = [&[statement], &page[..]].concat().repeat(POINTS);
        let ranges = [&[range], &page.repeat(pages_of_range)[..]].concat().repeat(RANGES);
        let pages_written = page.repeat(ROWS_WRITTEN as usize);
        let reads = [begin, point, ranges, pages_written].concat();

        let log_bytes = args.get_u32("log_size");
        let log = DiskAccess { bytes: log_bytes, write: true, file_bytes: LOG.max(log_bytes.into()), ..READ };
        let mut writes = [statement].repeat(WRITES);
        writes.extend([statement, Step::Disk(log)]);
        if args.get("flush") == 1 {
            writes.push(Step::Sync);
        }
        let locked = [
            &[Step::Lock(CONTENDED_ROWS)],
            &writes[..],
            &[Step::Unlock(CONTENDED_ROWS), Step::Done, Step::Restart],
        ];
        let contended = perhaps(contended_ppm(rows), &locked.concat());
        let steps = [reads, contended, writes, vec![Step::Done]].concat();
        AppConfig {
            tasks: args.get_u32("threads"),
            shared_bytes: PROGRAM_MEMORY,
            private_bytes: SESSION_MEMORY,
            ..AppConfig::new(script(args, steps))
        }
    },
};

/// Misses in a million page accesses, once the pool is warm: the hot rows stay in it, and of
/// the others as many as it has room for.
fn page_miss_ppm(table: i64, pool: i64) -> i64 {
    if table <= pool {
        0
    } else {
        COLD_PPM - (i128::from(COLD_PPM) * i128::from(pool) / i128::from(table)) as i64
    }
}

/// Transactions of a million that take the contended lock, so that two of them want it as often as two
/// transactions want the same row: with `w` rows written by each and row `r` picked with probability p(r), that is
/// w² Σ p(r)² as long as it is small, and each takes the lock with the square root of that probability.
fn contended_ppm(rows: i64) -> i64 {
    let hot = (rows / HOT_ROWS).max(1);
    let cold = (rows - hot).max(1);
    let same_row = HOT_PPM * HOT_PPM / 1_000_000 / hot + COLD_PPM * COLD_PPM / 1_000_000 / cold;
    let conflict = (ROWS_WRITTEN * ROWS_WRITTEN * same_row).min(1_000_000);
    (conflict * 1_000_000).isqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_missing_as_far_as_the_pool_does_not_hold_the_cold_rows() {
        assert_eq!(page_miss_ppm(100, 100), 0);
        assert_eq!(page_miss_ppm(200, 100), 125_000, "half of the quarter of picks that is cold");
        assert_eq!(page_miss_ppm(i64::MAX, 1), 250_000);
    }

    #[test]
    fn transactions_are_in_each_others_way_the_less_the_more_rows_there_are() {
        // 9 · (0.75² / 100 + 0.25² / 9900) = 0.0507, whose root is 0.225.
        assert!((contended_ppm(10_000) - 225_000).abs() < 1_000);
        assert!(contended_ppm(1000) > contended_ppm(10_000));
        assert!(contended_ppm(1_000_000) < 25_000);
        assert_eq!(contended_ppm(1), 1_000_000);
    }
}
