//! The work of the tasks, for programs to compare with: `cargo run --release -p vcpulab-bench --example tasks -- COUNT [MS]`.
//!
//! Prints the tasks, a line each: ns before it runs first, ns that it runs and ns that it sleeps by turns. With MS it does their work
//! instead, for so many simulated ms, as a bare loop and as a whole run, and prints what each did and how long it took, a line of
//! JSON each: `{"program": "bare loop", "dispatches": 12, "wakeups": 7, "seconds": 0.001}`.

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::sync::Mutex;

use vcpulab_bench::clock;
use vcpulab_bench::floor::Bare as _;
use vcpulab_bench::whole::{Part, of_tasks, run_in_parts, tasks, text_of};
use vcpulab_host::{Span, Time};

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u32>().expect("COUNT and MS are numbers"));
    let count = args.next().expect("COUNT is needed");
    let Some(simulated_ms) = args.next() else {
        for tasks::Task { delay_ns, run_ns, sleep_ns } in tasks::tasks(count) {
            println!("{delay_ns} {run_ns} {sleep_ns}");
        }
        return;
    };

    let start = clock::now();
    let mut floor = tasks::floor(count);
    floor.run_until(Time::ZERO + Span::from_ms(simulated_ms.into()));
    let did = floor.counts();
    print("bare loop", did.dispatches, did.wakeups, (clock::now() - start).as_secs_f64());

    let times = Mutex::new((clock::now(), [0.0; Part::ALL.len()]));
    let over = |part: Part| {
        let (began, times) = &mut *times.lock().expect("nobody panics with it");
        times[part as usize] = (clock::now() - *began).as_secs_f64();
        *began = clock::now();
    };
    let did = run_in_parts(&text_of(&of_tasks(count), simulated_ms), &over);
    // Each vCPU starts at 0, and finds that its task sleeps.
    let starts = u64::from(count);
    let (_, times) = times.into_inner().expect("nobody panicked with it");
    let seconds = times[Part::Run as usize];
    print("vcpulab", did.dispatches - starts, did.wakeups - starts, seconds);
}

fn print(program: &str, dispatches: u64, wakeups: u64, seconds: f64) {
    println!(
        "{{\"program\": \"{program}\", \"dispatches\": {dispatches}, \"wakeups\": {wakeups}, \"seconds\": {seconds:.6}}}"
    );
}
