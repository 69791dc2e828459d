//! Prints the self-benchmark's metrics: `cargo run --release -p vcpulab-bench --example rates`.

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

fn main() {
    for (name, value) in vcpulab_bench::run(0.5) {
        println!("{name:56} {value:16.2}");
    }
}
