//! One whole run, once, for profilers: `cargo run --release -p vcpulab-bench --example whole -- NAME|FILE [MS]`.
//!
//! NAME is one of [`whole::all`], FILE a scenario; MS is how long to simulate, ms, for a NAME.

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]
#![allow(clippy::disallowed_types, reason = "a benchmark reads the wall clock")]

use std::sync::Mutex;
use std::time::Instant;

use vcpulab_bench::whole::{self, Part};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wholes = whole::all();
    let Some(name) = args.first() else {
        wholes.iter().for_each(|whole| println!("{:12} {}", whole.name, whole.doc));
        return;
    };
    let text = match wholes.iter().find(|whole| whole.name == name) {
        Some(whole) => {
            whole.text(args.get(1).map_or(whole.simulated_ms, |ms| ms.parse().expect("MS is a number")))
        }
        None => std::fs::read_to_string(name).expect("a name of a whole run, or a scenario's file"),
    };
    let began = Mutex::new(Instant::now());
    let counts = whole::run_in_parts(&text, &|part| part_is_over(part, &mut began.lock().unwrap()));
    println!("{counts:?}");
}

/// Callgrind can be told to begin anew here.
#[inline(never)]
fn part_is_over(part: Part, began: &mut Instant) {
    println!("{part:6} {:9.3} ms", began.elapsed().as_secs_f64() * 1e3);
    *began = Instant::now();
}
