//! The scenarios of whole runs, written as users write them.

use std::fmt::Write as _;

use super::tasks::{PCPUS, SLICE_MS, Task, tasks};

/// Writes to a string, which takes all text.
macro_rules! add {
    ($text:expr, $($what:tt)*) => { writeln!($text, $($what)*).expect("a string takes all text") };
}

/// Tasks, each the only one of its domain, under round-robin and without costs.
pub fn of_tasks(count: u32) -> String {
    let mut text = format!(
        "[host]\nprofile = \"exact\"\npcpus = {PCPUS}\nscheduler = \"round-robin\"\nslice_ms = {SLICE_MS}\n"
    );
    for (number, Task { delay_ns, run_ns, sleep_ns }) in tasks(count).enumerate() {
        add!(text, "[[domain.t{number}.app]]\nkind = \"phases\"\nloop = -1\nstart_delay = \"{delay_ns}ns\"");
        add!(text, "[[domain.t{number}.app.phase]]");
        add!(text, "event = [{{ run = \"{run_ns}ns\" }}, {{ sleep = \"{sleep_ns}ns\" }}]");
    }
    text
}

/// Domains that do nothing, on the host of the tasks.
pub fn idle_domains(count: u32) -> String {
    let mut text = of_tasks(0);
    for number in 0..count {
        add!(text, "[domain.t{number}]");
    }
    text
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
    "[host]\nprofile = \"generic\"\npcpus = 16\nscheduler = \"credit2\"\n\
     [domain.dom0]\ndriver_domain = true\nvcpus = 4\nweight = 512\n\
     [domain.web]\nvcpus = 2\nnic.driver_domain = \"dom0\"\napp = [{ kind = \"web-server\" }]\n\
     [client.users]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 400\n\
     [domain.service]\ncount = 15\n[[domain.service.app]]\nkind = \"phases\"\nloop = -1\n[[domain.service.app.phase]]\n\
     event = [{ run = [\"500us\", \"2ms\", \"8ms\"] }, { sleep = [\"2ms\", \"10ms\", \"40ms\"] }]\n\
     [domain.batch]\ncount = 12\nvcpus = 2\napp = [{ kind = \"hog\", instance = 2 }]\n\
     [domain.idle]\ncount = 12\n"
        .to_owned()
}
