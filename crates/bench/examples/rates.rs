//! Prints the self-benchmark's metrics: `cargo run --release -p vcpulab-bench --example rates [SECONDS]`, so long for each.

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

fn main() {
    let seconds =
        std::env::args().nth(1).map_or(0.5, |seconds| seconds.parse().expect("SECONDS is a number"));
    for (name, value) in vcpulab_bench::run(seconds) {
        println!("{name:56} {value:16.2}");
    }
}
