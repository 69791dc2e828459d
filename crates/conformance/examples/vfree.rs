#![allow(clippy::print_stdout)]
use std::io::Read;
use std::path::Path;
use vcpulab_conformance::linux::*;
fn read(folder: &Path) -> Recording {
    let t = |f: &str| std::fs::read_to_string(folder.join(f)).unwrap();
    let out = std::process::Command::new("xz").arg("-dc").arg(folder.join("trace.txt.xz")).output().unwrap();
    let trace = String::from_utf8(out.stdout).unwrap();
    Recording::read(&Texts { experiment: &t("experiment.txt"), threads: &t("threads.txt"), tunables: &t("tunables.txt"), trace: &trace, expected: None }).unwrap()
}
fn main() {
    let verbose = std::env::var("V").is_ok();
    let all: Vec<_> = std::env::args_os().skip(1).map(|f| (f.to_string_lossy().into_owned(), read(Path::new(&f)))).collect();
    let pairs = std::env::var("P").is_ok();
    let mut sum: std::collections::BTreeMap<Metric, (u32, u32)> = Default::default();
    for (n, r) in &all {
        for (m, o) in &all {
            let other = if n == m { None } else { Some(o) };
            if pairs == other.is_none() || (pairs && r.setup.work() != o.setup.work()) { continue; }
            if !pairs { println!("{n} hz {} {:?}", r.hz(), Overheads::of(&r.lines, &r.clock())); } else { println!("{n} -> {m}"); }
            match compared(r, other) {
                Err(e) => println!("   {e}"),
                Ok(c) => for x in c.cells {
                    let s = sum.entry(x.metric).or_default(); s.1 += 1; if x.holds { s.0 += 1 }
                    if verbose || !x.holds { println!("   {:10} {:10} rec {:9.2} pred {:9.2} off {:+7.2} {} {}", x.of, format!("{:?}", x.metric), x.recorded, x.predicted, x.off, x.off_unit, if x.holds {""} else {"<<<"}); }
                },
            }
        }
    }
    println!("{sum:?}");
}
