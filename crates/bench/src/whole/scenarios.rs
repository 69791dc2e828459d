//! The scenarios of whole runs, written as users write them.

use std::fmt::Write as _;

/// Writes to a string, which takes all text.
macro_rules! add {
    ($text:expr, $($what:tt)*) => { writeln!($text, $($what)*).expect("a string takes all text") };
}

/// Tasks on four pCPUs, each the only one of its domain, run about 2 ms and sleep by turns, so that four fifths of the CPU time are
/// asked for; round-robin with slices of 1 ms, no costs.
///
/// Task `i` runs and sleeps for times of its own, always the same, so that other programs can do the same work to the
/// nanosecond without the same random numbers: see [`task`].
pub fn tasks(count: u32) -> String {
    let mut text =
        "[host]\nprofile = \"exact\"\npcpus = 4\nscheduler = \"round-robin\"\nslice_ms = 1\n".to_owned();
    for number in 0..count {
        let Task { delay_ns, run_ns, sleep_ns } = task(number, count);
        add!(text, "[[domain.t{number}.app]]\nkind = \"phases\"\nloop = -1\nstart_delay = \"{delay_ns}ns\"");
        add!(
            text,
            "[[domain.t{number}.app.phase]]\nevent = [{{ run = \"{run_ns}ns\" }}, {{ sleep = \"{sleep_ns}ns\" }}]"
        );
    }
    text
}

/// What a task of [`tasks`] does: it sleeps `delay_ns` once, and from then on runs `run_ns` and sleeps `sleep_ns` by turns.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Time before it runs first, ns: anywhere in its period.
    pub delay_ns: u64,
    /// CPU time that it needs each time, ns: from 1 to 3 ms.
    pub run_ns: u64,
    /// Time that it sleeps each time, ns: so long that `count` tasks ask for four fifths of four pCPUs.
    pub sleep_ns: u64,
}

/// Task `number` of `count`.
pub fn task(number: u32, count: u32) -> Task {
    /// The golden ratio's and the square root of two's fractions, in 2^-32: multiples of them are spread evenly.
    const GOLDEN: u32 = 0x9E37_79B9;
    const ROOT: u32 = 0x6A09_E667;
    let part = |of: u64, step: u32| (of * u64::from(number.wrapping_mul(step))) >> 32;
    let run_ns = 1_000_000 + part(2_000_000, GOLDEN);
    let period_ns = run_ns * u64::from(count) * 5 / 16;
    Task { delay_ns: 1 + part(period_ns, ROOT), run_ns, sleep_ns: period_ns - run_ns }
}

/// A web server at more than it can serve, and its driver domain, on one pCPU.
pub fn web_server() -> String {
    "[host]\nprofile = \"lp200r\"\nscheduler = \"credit\"\n[domain.dom0]\ndriver_domain = true\n\
     [domain.web]\nnic.driver_domain = \"dom0\"\napp = [{ kind = \"web-server\" }]\n\
     [client.users]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 1100\n"
        .to_owned()
}

/// Guests, a third each of them web servers with users, disk readers, and hogs beside periodic jobs, with one driver domain.
pub fn crowd(guests: u32, pcpus: u32) -> String {
    let mut text = format!(
        "[host]\nprofile = \"generic\"\npcpus = {pcpus}\nscheduler = \"credit2\"\n\
         [domain.dom0]\ndriver_domain = true\nvcpus = 4\n[disk.ssd]\ndriver_domain = \"dom0\"\nkind = \"ssd\"\n"
    );
    for guest in 0..guests {
        let apps = match guest % 3 {
            0 => "{ kind = \"web-server\" }",
            1 => "{ kind = \"iozone\", operation = \"random-read\" }",
            _ => "{ kind = \"hog\" }, { kind = \"periodic\", run = \"1ms\", period = \"10ms\" }",
        };
        add!(
            text,
            "[domain.g{guest}]\nnic.driver_domain = \"dom0\"\ndisk.driver_domain = \"dom0\"\napp = [{apps}]"
        );
        if guest % 3 == 0 {
            add!(
                text,
                "[client.c{guest}]\nkind = \"closed-loop\"\nserver = \"g{guest}\"\nusers = 10\nthink = \"10ms\""
            );
        }
    }
    text
}

/// A host as it is in use: Dom0, a web server that people wait for, 15 services that compute now and then, 12 virtual machines
/// that always compute, and 12 that do nothing, on 16 pCPUs under Credit2.
pub fn in_use() -> String {
    let mut text = "[host]\nprofile = \"generic\"\npcpus = 16\nscheduler = \"credit2\"\n\
         [domain.dom0]\ndriver_domain = true\nvcpus = 4\nweight = 512\n\
         [domain.web]\nvcpus = 2\nnic.driver_domain = \"dom0\"\napp = [{ kind = \"web-server\" }]\n\
         [client.users]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 400\n"
        .to_owned();
    for service in 0..15 {
        add!(
            text,
            "[[domain.service{service}.app]]\nkind = \"phases\"\nloop = -1\n[[domain.service{service}.app.phase]]"
        );
        add!(
            text,
            "event = [{{ run = [\"500us\", \"2ms\", \"8ms\"] }}, {{ sleep = [\"2ms\", \"10ms\", \"40ms\"] }}]"
        );
    }
    for batch in 0..12 {
        add!(text, "[domain.batch{batch}]\nvcpus = 2\napp = [{{ kind = \"hog\", instance = 2 }}]");
    }
    for idle in 0..12 {
        add!(text, "[domain.idle{idle}]");
    }
    text
}
