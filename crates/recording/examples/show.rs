//! What a trace holds, as JSON: `cargo run --example show -- trace.bin`.
#![allow(clippy::print_stdout, reason = "a program")]
use std::io::Read;
use vcpulab_recording::*;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("a file")?;
    let mhz = std::env::args().nth(2).and_then(|mhz| mhz.parse().ok());
    let mut file = std::fs::File::open(path)?;
    let mut recording = Recording::new(Format::Xentrace, Options { cpu_mhz: mhz, ..Options::default() })?;
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 { break; }
        recording.feed(&chunk[..read], |_| ())?;
    }
    println!("{}", serde_json::to_string_pretty(&recording.finish(|_| ())?)?);
    Ok(())
}
