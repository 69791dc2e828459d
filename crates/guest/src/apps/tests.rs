//! Rules for every kind of application.

use vcpulab_host::{NEVER, Span, Time};

use super::*;
use crate::ids::{AppId, ConnectionId, ServiceId};
use crate::script::{AppConfig, DiskAccess, Step};
use crate::{Io, Kernel, KernelConfig, Next, Random, Request};

/// The default on a machine where a kilocycle takes a microsecond.
fn default_value(param: &AppParam) -> i64 {
    match param.default {
        AppDefault::Value(value) => value,
        AppDefault::Kilocycles(kilocycles) => kilocycles * 1000,
        AppDefault::Profile(_) => 50_000,
        AppDefault::Absent => -1,
        AppDefault::Required => match param.kind {
            AppParamKind::Duration { min, .. } => min.max(Span::from_ms(1)).ns(),
            AppParamKind::Size { min, .. } | AppParamKind::Int { min, .. } => min.max(1),
            _ => 0,
        },
    }
}

/// Least and largest value of a parameter.
fn range(kind: AppParamKind) -> (i64, i64) {
    match kind {
        AppParamKind::Duration { min, max } => (min.ns(), max.ns()),
        AppParamKind::Size { min, max } | AppParamKind::Int { min, max } => (min, max),
        AppParamKind::Percent => (0, 100),
        AppParamKind::Choice(words) => (0, words.len() as i64 - 1),
        AppParamKind::Flag => (0, 1),
        AppParamKind::Service(_) => (0, 1000),
    }
}

/// The number as a value of the parameter; below 0 a service is left out.
fn as_value(param: &AppParam, number: i64) -> AppValue {
    match param.kind {
        AppParamKind::Service(_) if number < 0 => AppValue::Absent,
        AppParamKind::Service(_) => AppValue::Service(ServiceId(number as u32)),
        _ => AppValue::Number(number),
    }
}

fn defaults(kind: &AppKind) -> Vec<AppValue> {
    kind.params.iter().map(|param| as_value(param, default_value(param))).collect()
}

/// Any values that are allowed, the ends of the ranges among them.
fn any_values(kind: &AppKind, random: &mut Random) -> Vec<AppValue> {
    let value = |param: &AppParam| {
        let (min, max) = range(param.kind);
        let number = match random.below(5) {
            0 => min,
            1 => max,
            2 => default_value(param),
            3 => min + random.below((max - min + 1) as u64) as i64,
            _ => (min + random.below(100) as i64).min(max),
        };
        as_value(param, number)
    };
    kind.params.iter().map(value).collect()
}

fn build(kind: &AppKind, values: &[AppValue], spread_percent: i64) -> AppConfig {
    (kind.build)(&Args { kind, values, spread_percent })
}

/// Demands in a row that take no time before tasks count as going round in circles. (The longest script
/// asks the database a thousand times for a page and writes a thousand rows.)
const IOS_MAX: u32 = 5000;

/// Lets an application run, alone on two vCPUs, in surroundings that answer at once, for this number of turns: its kernel
/// and the time then.
fn run(app: AppConfig, turns: u32) -> (Kernel, i64) {
    let (tasks, classes) = (app.tasks, app.script.classes.len().max(1) as u32);
    let serves = app.service.is_some();
    let stops = app.script.steps.contains(&Step::Stop);
    let config = KernelConfig {
        vcpus: 2,
        threads_per_core: 1,
        apps: vec![app].into(),
        page_fault_ns: Span::from_us(1),
        slice_ns: Span::from_ms(10),
        idle_tick: None,
        wake_ns: Span::ZERO,
        idle_ns: Span::ZERO,
    };
    let mut kernel = Kernel::new(&config.into(), Time::ZERO, 1, 0);
    let (mut now, mut requests, mut in_no_time) = (Time::ZERO, 0, 0);
    for _ in 0..turns {
        let mut span = Span::MAX;
        let mut busy = [false; 2];
        for (vcpu, busy) in busy.iter_mut().enumerate() {
            loop {
                match kernel.next(vcpu, now) {
                    Next::Run(run) => {
                        assert!(run > Span::ZERO);
                        span = span.min(run);
                        *busy = true;
                    }
                    Next::Spin => *busy = true,
                    Next::Io(task, io) => {
                        in_no_time += 1;
                        assert!(in_no_time < IOS_MAX * tasks, "it asks and asks in no time");
                        if let Io::Connect(_) = io {
                            kernel.set_stream(task, ConnectionId(0));
                        }
                        continue;
                    }
                    Next::Kernel(_) | Next::Idle => {}
                }
                break;
            }
        }
        if kernel.take_kick().is_some() {
            // A vCPU that was idle has something to do by now.
            while kernel.take_kick().is_some() {}
            in_no_time += 1;
            assert!(in_no_time < IOS_MAX * tasks, "one wakes the other in no time");
            continue;
        }
        let timer = kernel.next_timer(0).min(kernel.next_timer(1));
        span = span.min(timer - now);
        if span == Span::MAX || timer == NEVER && busy == [false; 2] {
            assert!(busy == [false; 2], "all wait for a lock that nobody gives back");
            if !serves {
                assert!(stops, "all wait for something that never comes");
                break;
            }
            in_no_time += 1;
            assert!(in_no_time < IOS_MAX * tasks, "it answers in no time");
            let asks = [0, 1, 5017, u32::MAX][requests as usize % 4];
            let request = Request {
                connection: ConnectionId(requests.into()),
                class: requests % classes,
                asks,
                since: now,
            };
            kernel.request(AppId(0), request);
            requests += 1;
            continue;
        }
        in_no_time = if span > Span::ZERO { 0 } else { in_no_time + 1 };
        assert!(in_no_time < IOS_MAX * tasks, "no time passes");
        now += span;
        for vcpu in (0..2).filter(|&vcpu| busy[vcpu]) {
            kernel.computed(vcpu, span);
        }
        if now.ns() > i64::MAX / 4 {
            break;
        }
    }
    (kernel, now.ns())
}

#[test]
fn names_are_unique_and_every_default_is_allowed_and_has_a_source() {
    for (index, kind) in KINDS.iter().enumerate() {
        assert!(KINDS[..index].iter().all(|other| other.name != kind.name), "{}", kind.name);
        assert!(kind.doc.len() > 10, "{}", kind.name);
        for (position, param) in kind.params.iter().enumerate() {
            let what = format!("{}.{}", kind.name, param.name);
            let twice = kind.params[..position].iter().any(|other| other.name == param.name);
            assert!(!twice && param.doc.len() > 10, "{what}");
            assert!(param.source.len() > 5 || param.default == AppDefault::Required, "{what}: no source");
            if let AppDefault::Value(_) | AppDefault::Kilocycles(_) = param.default {
                let (min, max) = range(param.kind);
                assert!((min..=max).contains(&default_value(param)), "{what}: its default is not allowed");
            }
            if let AppParamKind::Service(kinds) = param.kind {
                let serves = |name: &&str| find(name).is_some_and(|kind| !kind.classes.is_empty());
                assert!(kinds.iter().all(serves), "{what}: no such service");
            }
        }
        for class in kind.classes {
            assert!(class.source.len() > 5, "{}.{}: no source", kind.name, class.name);
        }
        assert!(
            kind.classes.is_empty() || kind.classes.iter().any(|class| class.weight > 0),
            "{}",
            kind.name
        );
    }
}

#[test]
fn every_script_stays_within_itself_and_answers_all_its_classes() {
    let mut random = Random::new(1, 0, 0);
    for kind in KINDS {
        let any = (0..200).map(|_| any_values(kind, &mut random));
        for values in any.chain([defaults(kind)]) {
            let what = format!("{} {values:?}", kind.name);
            let app = build(kind, &values, 0);
            let script = &app.script;
            assert!(!script.steps.is_empty() && (1..=4096).contains(&app.tasks), "{what}");
            assert!(script.steps.len() < 10_000, "{what}: {} steps", script.steps.len());
            if app.service.is_some() {
                assert_eq!(script.classes.len(), kind.classes.len(), "{what}");
            }
            for (at, step) in script.steps.iter().enumerate() {
                match *step {
                    Step::Repeat { from, counter, .. } => {
                        assert!((from as usize) < at && counter < script.counters, "{what}");
                    }
                    Step::Chance { ppm, skip } => {
                        let inside = at + (skip as usize) < script.steps.len();
                        assert!(ppm <= 1_000_000 && inside, "{what}");
                    }
                    Step::Compute { span, .. } => {
                        assert!(span > Span::ZERO, "{what}: work that takes no time")
                    }
                    Step::Disk(DiskAccess { bytes, file_bytes, .. }) => {
                        assert!(bytes > 0 && (bytes.into()..=1 << 54).contains(&file_bytes), "{what}");
                    }
                    _ => {}
                }
            }
            assert!(script.classes.iter().all(|&at| (at as usize) < script.steps.len()), "{what}");
        }
    }
}

#[test]
fn every_kind_gets_work_done_at_its_defaults() {
    for kind in KINDS {
        let (kernel, now) = run(build(kind, &defaults(kind), 15), 2000);
        let completed = kernel.stats()[AppId(0)].completed;
        assert!(completed > 0, "{}: nothing within {now} ns", kind.name);
    }
}

#[test]
fn no_kind_panics_or_goes_round_in_no_time_whatever_its_parameters() {
    let mut random = Random::new(2, 0, 0);
    for kind in KINDS {
        for spread_percent in [0, 15, 100].repeat(15) {
            let values = any_values(kind, &mut random);
            let what = format!("{} {values:?} {spread_percent} %", kind.name);
            let app = build(kind, &values, spread_percent);
            let ran = std::panic::catch_unwind(|| run(app, 300));
            let Ok((kernel, now)) = ran else { panic!("{what}") };
            let stopped = (0..2).all(|vcpu| kernel.current(vcpu).is_none());
            assert!(now > 0 || stopped, "{what}: no time passed");
        }
    }
}

#[test]
fn the_threads_of_spin_wait_for_each_other_and_no_longer_than_they_must() {
    let kind = find("spin").unwrap();
    let (kernel, now) = run(build(kind, &defaults(kind), 15), 2000);
    let (completed, spun) = (kernel.stats()[AppId(0)].completed, kernel.spin_ns().ns());
    assert!(spun > 0 && spun < now / 5, "{spun} of {now} ns");
    // A round takes 100 us by itself, and there are two threads.
    assert!(completed as i64 > 2 * now / 115_000, "{completed} in {now} ns");
}

#[test]
fn a_build_compiles_all_its_files_and_ends() {
    let kind = find("kernel-build").unwrap();
    let mut values = defaults(kind);
    for (param, value) in kind.params.iter().zip(&mut values) {
        *value = match param.name {
            "files" => AppValue::Number(30),
            "jobs" => AppValue::Number(3),
            _ => *value,
        };
    }
    let (kernel, now) = run(build(kind, &values, 0), 10_000);
    assert_eq!(kernel.stats()[AppId(0)].completed, 30);
    // Three jobs on two vCPUs have 30 files of 600 ms to compile.
    assert!((9_000_000_000..13_000_000_000).contains(&now), "{now} ns");
}
