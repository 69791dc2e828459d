//! The guest kernel as a whole.

use super::*;
use crate::ids::ChannelId;
use crate::script::{Script, ServiceConfig, Step};
use vcpulab_host::NEVER;

const TIME_SLICE: Span = Span::from_ms(10);

fn ns(ns: i64) -> Span {
    Span::from_ns(ns)
}

/// The time `span` after the boot.
fn at(span: Span) -> Time {
    Time::ZERO + span
}

fn kernel(vcpus: u32, apps: Vec<AppConfig>) -> Kernel {
    let config = KernelConfig {
        vcpus,
        threads_per_core: 1,
        apps: apps.into(),
        page_fault_ns: ns(100),
        slice_ns: TIME_SLICE,
        idle_tick: None,
        wake_ns: Span::ZERO,
        idle_ns: Span::ZERO,
    };
    Kernel::new(&config.into(), Time::ZERO, 1, 0)
}

/// A kernel of one vCPU that leaves its tick on, and takes time to wake and to go idle.
fn ticking(tick: IdleTick, (wake_ns, idle_ns): (Span, Span), apps: Vec<AppConfig>, seed: u64) -> Kernel {
    let config = KernelConfig {
        vcpus: 1,
        threads_per_core: 1,
        apps: apps.into(),
        page_fault_ns: ns(0),
        slice_ns: TIME_SLICE,
        idle_tick: Some(tick.into()),
        wake_ns,
        idle_ns,
    };
    Kernel::new(&config.into(), Time::ZERO, seed, 0)
}

/// A kernel that is told of cores with several threads places its tasks on the first threads of all cores first, and wakes a
/// task whose vCPU is busy on a free core. One that is not told takes its vCPUs in turn.
#[test]
fn tasks_are_spread_over_cores_first() {
    let of = |threads_per_core| {
        let config = KernelConfig {
            vcpus: 8,
            threads_per_core,
            apps: vec![AppConfig { tasks: 6, ..app(vec![compute(ns(100)), Step::Sleep(ns(900))]) }].into(),
            slice_ns: TIME_SLICE,
            ..KernelConfig::default()
        };
        Kernel::new(&config.into(), Time::ZERO, 1, 0)
    };
    let places = |kernel: &Kernel| (0..6).map(|task| kernel.standing(TaskId(task)).0).collect::<Vec<_>>();
    assert_eq!(places(&of(1)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(places(&of(2)), [0, 2, 4, 6, 1, 3]);
    assert_eq!(places(&of(4)), [0, 4, 1, 5, 2, 6]);
    assert_eq!(places(&of(3)), [0, 3, 6, 1, 4, 7], "the last core is not whole");
    assert_eq!(places(&of(512)), [0, 1, 2, 3, 4, 5], "one core");
}

#[test]
fn a_task_wakes_on_a_free_core_if_its_vcpu_is_busy() {
    let woken_on = |threads_per_core| {
        let config = KernelConfig {
            vcpus: 6,
            threads_per_core,
            apps: vec![AppConfig { tasks: 7, ..app(vec![compute(ns(100)), Step::Sleep(ns(900))]) }].into(),
            slice_ns: TIME_SLICE,
            ..KernelConfig::default()
        };
        let mut kernel = Kernel::new(&config.into(), Time::ZERO, 1, 0);
        // The tasks of vCPUs 1, 4 and 5 block, and the two tasks that share vCPU 0 have blocked and are busy.
        for vcpu in [1, 4, 5, 0] {
            assert_eq!(kernel.next(vcpu, at(ns(0))), Next::Run(ns(100)));
            let task = kernel.current(vcpu).unwrap();
            kernel.wait(task);
        }
        assert_eq!(kernel.next(0, at(ns(0))), Next::Run(ns(100)));
        kernel.resume(TaskId(0));
        kernel.standing(TaskId(0)).0
    };
    assert_eq!(woken_on(1), 1, "the first that is free");
    assert_eq!(woken_on(2), 4, "the first of the free core");
}

#[test]
fn a_tick_at_a_given_time_is_then_whatever_the_seed() {
    let tick = IdleTick { period_ns: ns(4000), cpu_ns: ns(9), busy_ns: Span::ZERO, at_ns: Some(ns(9300)) };
    for seed in 0..9 {
        let mut kernel = ticking(
            tick,
            (Span::ZERO, Span::ZERO),
            vec![app(vec![compute(ns(10)), Step::Sleep(ns(90_000))])],
            seed,
        );
        assert_eq!(kernel.next(0, at(ns(0))), Next::Run(ns(10)));
        kernel.computed(0, ns(10));
        assert_eq!((kernel.next(0, at(ns(10))), kernel.next_timer(0)), (Next::Idle, at(ns(1300))));
    }
}

#[test]
fn a_tick_that_finds_it_busy_takes_time_of_whatever_it_does() {
    let tick = IdleTick { period_ns: ns(4000), cpu_ns: ns(9), busy_ns: ns(30), at_ns: Some(ns(0)) };
    let mut kernel = ticking(
        tick,
        (Span::ZERO, Span::ZERO),
        vec![app(vec![compute(ns(10_000)), Step::Sleep(ns(90_000))])],
        1,
    );
    let mut goes_on = |now, next, span| {
        assert_eq!(kernel.next(0, at(ns(now))), next);
        kernel.computed(0, ns(span));
    };
    goes_on(0, Next::Run(ns(4000)), 4000);
    goes_on(4000, Next::Kernel(ns(30)), 20);
    goes_on(4020, Next::Kernel(ns(10)), 10);
    goes_on(4030, Next::Run(ns(3970)), 3970);
    // It could not run for so long that three more were due: they are one.
    goes_on(20_001, Next::Kernel(ns(30)), 30);
    goes_on(20_031, Next::Run(ns(2030)), 2030);
    goes_on(22_061, Next::Idle, 0);
}

#[test]
fn waking_and_going_idle_take_time_once_however_much_there_is_to_do() {
    let tick = IdleTick { period_ns: ns(4000), cpu_ns: ns(9), busy_ns: Span::ZERO, at_ns: Some(ns(0)) };
    let sleeper = |span| app(vec![Step::Sleep(ns(span)), compute(ns(10))]);
    let mut kernel = ticking(tick, (ns(30), ns(7)), vec![sleeper(1000), sleeper(1000), sleeper(1055)], 1);
    assert_eq!(kernel.next(0, at(ns(0))), Next::Idle);
    assert_eq!(kernel.next(0, at(ns(1000))), Next::Kernel(ns(30)));
    kernel.computed(0, ns(20));
    assert_eq!(kernel.next(0, at(ns(1020))), Next::Kernel(ns(10)), "it is not done with it");
    kernel.computed(0, ns(10));
    for now in [1030, 1040] {
        assert_eq!(kernel.next(0, at(ns(now))), Next::Run(ns(10)), "both have slept");
        kernel.computed(0, ns(10));
    }
    assert_eq!(kernel.next(0, at(ns(1050))), Next::Kernel(ns(7)), "there is nothing more to do");
    kernel.computed(0, ns(5));
    assert_eq!(
        kernel.next(0, at(ns(1055))),
        Next::Kernel(ns(2)),
        "another has slept, and it is not done with it"
    );
    kernel.computed(0, ns(2));
    assert_eq!(kernel.next(0, at(ns(1057))), Next::Run(ns(10)));
    kernel.computed(0, ns(10));
    assert_eq!(kernel.next(0, at(ns(1067))), Next::Idle, "once for each time that it woke");
    assert_eq!(kernel.next(0, at(ns(4000))), Next::Kernel(ns(30)), "it was idle again");
    assert_eq!(kernel.next_timer(0), NEVER, "its tick is on while it is at work, and nobody waits for that");
}

#[test]
fn what_interrupts_do_goes_before_what_threads_do_in_the_order_of_events() {
    let (asked, told) = (ChannelId(0), ChannelId(1));
    let steps = vec![
        Step::AwaitEvent(asked),
        compute(ns(10)),
        Step::Notify(told),
        compute(ns(20)),
        Step::Notify(told),
        compute(ns(5)),
    ];
    let acknowledges = AppConfig { softirq: Softirq::First, ..app(steps) };
    let receipt = vec![Step::AwaitEvent(told), compute(ns(3))];
    let receipt = AppConfig { softirq: Softirq::All, ..app(receipt) };
    let mut kernel = kernel(1, vec![acknowledges.clone(), acknowledges, receipt]);
    let tasks = [0, 1, 2].map(TaskId);
    for task in [2, 0, 1].map(TaskId) {
        assert!(matches!(kernel.next(0, Time::ZERO), Next::Io(id, Io::AwaitEvent(_)) if id == task));
        kernel.wait(task);
    }
    assert_eq!(kernel.next(0, Time::ZERO), Next::Idle);
    let notifies = |task: usize| Next::Io(tasks[task], Io::Notify(told));
    kernel.resume(tasks[1]);
    kernel.resume(tasks[0]);
    for next in [Next::Run(ns(10)), notifies(1), Next::Run(ns(10)), notifies(0)] {
        assert_eq!(kernel.next(0, at(ns(1))), next);
        if let Next::Run(span) = next {
            kernel.computed(0, span);
        }
    }
    // Both threads have what to pass on.
    assert_eq!(kernel.next(0, at(ns(1))), Next::Run(ns(20)));
    kernel.computed(0, ns(8));
    kernel.resume(tasks[2]);
    assert_eq!(kernel.next(0, at(ns(1))), Next::Run(ns(3)), "an interrupt does not wait for a thread");
    kernel.computed(0, ns(3));
    assert!(matches!(kernel.next(0, at(ns(1))), Next::Io(id, Io::AwaitEvent(_)) if id == tasks[2]));
    kernel.wait(tasks[2]);
    let left = [Next::Run(ns(20)), notifies(0), Next::Run(ns(12)), notifies(1), Next::Run(ns(5))];
    for next in left {
        assert_eq!(kernel.next(0, at(ns(1))), next, "who has passed something on lets others do so");
        if let Next::Run(span) = next {
            kernel.computed(0, span);
        }
    }
}

fn compute(span: Span) -> Step {
    Step::Compute { span, per_byte_ps: 0 }
}

fn app(steps: Vec<Step>) -> AppConfig {
    AppConfig::new(Script::new(steps))
}

/// Tasks whose locks spin.
fn spinning(steps: Vec<Step>, tasks: u32) -> AppConfig {
    AppConfig { tasks, spins: true, ..app(steps) }
}

/// Lets all vCPUs, with a pCPU each, continue until then.
fn run(kernel: &mut Kernel, vcpus: usize, from: Time, until: Time) {
    let mut now = from;
    while now < until {
        let mut next: Vec<Next> = (0..vcpus).map(|vcpu| kernel.next(vcpu, now)).collect();
        while let Some(vcpu) = kernel.take_kick() {
            next[vcpu] = kernel.next(vcpu, now);
        }
        let spans =
            next.iter().filter_map(|next| if let Next::Run(span) = next { Some(*span) } else { None });
        let timers = (0..vcpus).map(|vcpu| kernel.next_timer(vcpu) - now);
        let span = spans.chain(timers).chain([until - now]).min().unwrap();
        now += span;
        for (vcpu, next) in next.iter().enumerate() {
            if matches!(next, Next::Run(_) | Next::Spin) {
                kernel.computed(vcpu, span);
            }
        }
    }
}

fn hog() -> AppConfig {
    let script = Script { unit: Unit::CpuMillisecond, ..Script::new(vec![compute(ns(10_000_000))]) };
    AppConfig::new(script)
}

#[test]
fn tasks_share_a_vcpu_in_slices() {
    let mut kernel = kernel(1, vec![hog(), hog()]);
    for _ in 0..10 {
        assert_eq!(kernel.next(0, Time::ZERO), Next::Run(TIME_SLICE));
        kernel.computed(0, TIME_SLICE);
    }
    let computed: Vec<u64> = kernel.stats().iter().map(|stats| stats.completed).collect();
    assert_eq!(computed, [50, 50], "ms each");
}

#[test]
fn a_sleeper_that_wakes_goes_before_a_hog() {
    let mut kernel = kernel(1, vec![app(vec![Step::Sleep(ns(30)), compute(ns(5))]), hog()]);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(ns(10_000_000)), "only the hog can go on");
    assert_eq!(kernel.next_timer(0), at(ns(30)));
    kernel.computed(0, ns(30));
    assert_eq!(kernel.next(0, at(ns(30))), Next::Run(ns(5)));
    kernel.computed(0, ns(5));
    assert_eq!(kernel.next(0, at(ns(35))), Next::Run(ns(10_000_000 - 30)));
}

#[test]
fn a_sleep_begins_when_the_work_is_done_though_the_slice_is_over_too() {
    let mut kernel = kernel(1, vec![app(vec![compute(TIME_SLICE), Step::Sleep(ns(30))]), hog()]);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(TIME_SLICE));
    kernel.computed(0, TIME_SLICE);
    assert_eq!(kernel.next(0, at(TIME_SLICE)), Next::Run(TIME_SLICE), "now the hog");
    assert_eq!(kernel.next_timer(0), at(TIME_SLICE + ns(30)));
}

#[test]
fn who_is_to_begin_later_sleeps_until_then() {
    let late = AppConfig { delay_ns: ns(70), ..app(vec![compute(ns(5)), Step::Timer(ns(20)), Step::Done]) };
    let mut kernel = kernel(1, vec![late]);
    assert_eq!((kernel.next(0, Time::ZERO), kernel.next_timer(0)), (Next::Idle, at(ns(70))));
    run(&mut kernel, 1, at(ns(70)), at(ns(1071)));
    let stats = &kernel.stats()[AppId(0)];
    assert_eq!((stats.completed, stats.responses().read().max()), (50, 20));
}

#[test]
fn every_sleeper_wakes_in_its_turn() {
    let once = |span| app(vec![Step::Sleep(span), compute(ns(1)), Step::Done, Step::Stop]);
    let mut kernel = kernel(1, vec![once(ns(30)), once(ns(10)), once(ns(20))]);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Idle);
    for now in [10, 20, 30].map(Time::from_ns) {
        assert_eq!((kernel.next_timer(0), kernel.next(0, now - ns(1))), (now, Next::Idle));
        assert_eq!(kernel.next(0, now), Next::Run(ns(1)));
        kernel.computed(0, ns(1));
        assert_eq!(kernel.next(0, now), Next::Idle);
    }
    assert_eq!(kernel.next_timer(0), NEVER);
    assert!(kernel.stats().iter().all(|stats| stats.completed == 1));
}

#[test]
fn requests_find_a_task_that_waits_and_queue_when_none_does() {
    let service = Some(ServiceConfig::of(2));
    let steps = vec![Step::Await, compute(ns(9)), Step::Reply(None), Step::Done];
    let server = AppConfig { service, ..app(steps) };
    let mut kernel = kernel(2, vec![hog(), server]);
    let request =
        |connection| Request { connection: ConnectionId(connection), class: 0, asks: 77, since: Time::ZERO };
    assert_eq!(kernel.next(1, Time::ZERO), Next::Idle);
    kernel.request(AppId(1), request(5));
    assert_eq!(kernel.take_kick(), Some(1));
    kernel.request(AppId(1), request(6));
    assert_eq!(kernel.take_kick(), None, "it is awake already");
    for connection in [5, 6].map(ConnectionId) {
        assert_eq!(kernel.next(1, Time::ZERO), Next::Run(ns(9)));
        kernel.computed(1, ns(9));
        assert_eq!(kernel.next(1, at(ns(20))), Next::Io(TaskId(1), Io::Reply { connection, bytes: 77 }));
    }
    assert_eq!(kernel.next(1, at(ns(20))), Next::Idle);
    assert_eq!(
        (kernel.stats()[AppId(1)].completed, kernel.stats()[AppId(1)].responses().read().max()),
        (2, 20)
    );
}

#[test]
fn syns_wait_in_the_syn_queue_and_connections_in_the_backlog() {
    use SynAnswer::{Accepted, Dropped, Refused};
    let service = Some(ServiceConfig { backlog: 1, syn_queue: 2, ..ServiceConfig::of(2) });
    let mut kernel = kernel(1, vec![hog(), AppConfig { service, ..app(vec![Step::Await, Step::Done]) }]);
    let service = kernel.service_mut(AppId(1)).unwrap();
    let [c10, c11, c12, c13, c14] = [10, 11, 12, 13, 14].map(ConnectionId);
    assert_eq!([0; 3].map(|_| service.syn()), [Accepted, Accepted, Dropped]);
    assert!(service.connect(c10) && service.connect(c11));
    assert_eq!([0; 2].map(|_| service.syn()), [Accepted, Refused]);
    assert!(!service.connect(c12), "two are served");
    assert_eq!(service.disconnect(), Some(c12), "it is its turn");
    assert_eq!(service.disconnect(), None);
    assert_eq!(service.syn(), Accepted);
    service.give_up_set_up();
    assert_eq!([0; 2].map(|_| service.syn()), [Accepted, Accepted]);
    assert!(service.connect(c13) && !service.connect(c14));
    service.leave_backlog(c14);
    assert_eq!(service.disconnect(), None);
    assert!(kernel.service_mut(AppId(0)).is_none(), "a hog is no service");
}

#[test]
fn who_waits_for_a_lock_spins_until_its_holder_gives_it_back() {
    let locked = || spinning(vec![Step::Lock(0), compute(ns(10)), Step::Unlock(0), Step::Stop], 1);
    let locked = || AppConfig { shares_sync_objects: true, ..locked() };
    let mut kernel = kernel(2, vec![locked(), locked()]);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(ns(10)));
    assert_eq!(kernel.next(1, Time::ZERO), Next::Spin);
    kernel.computed(0, ns(10));
    assert_eq!((kernel.next(0, at(ns(10))), kernel.take_kick()), (Next::Idle, Some(1)));
    kernel.computed(1, ns(10));
    assert_eq!(kernel.next(1, at(ns(10))), Next::Run(ns(10)));
    assert_eq!(kernel.spin_ns(), ns(10));
}

#[test]
fn who_holds_a_spin_lock_keeps_its_vcpu_until_it_gives_it_back() {
    let holder = spinning(vec![Step::Lock(0), compute(3 * TIME_SLICE), Step::Unlock(0), compute(ns(7))], 1);
    let mut kernel =
        kernel(1, vec![holder, app(vec![Step::Sleep(ns(5)), compute(ns(2)), Step::Stop]), hog()]);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(3 * TIME_SLICE), "no slices, though the hog waits");
    kernel.computed(0, TIME_SLICE);
    assert_eq!(
        kernel.next(0, at(TIME_SLICE)),
        Next::Run(2 * TIME_SLICE),
        "nor does one go first that is woken"
    );
    kernel.computed(0, 2 * TIME_SLICE);
    assert_eq!(kernel.next(0, at(3 * TIME_SLICE)), Next::Run(TIME_SLICE), "then it lets the hog go first");
    kernel.computed(0, TIME_SLICE);
    assert_eq!(kernel.next(0, at(4 * TIME_SLICE)), Next::Run(ns(2)), "and the one that was woken");
    kernel.computed(0, ns(2));
    assert_eq!(
        kernel.next(0, at(4 * TIME_SLICE + ns(2))),
        Next::Run(TIME_SLICE),
        "and the hog, which had least"
    );
}

#[test]
fn spinners_and_holders_that_share_vcpus_all_make_progress() {
    // Five tasks on two vCPUs; every third section lasts longer than a slice; a holder may even sleep.
    for hold in [Span::ZERO, TIME_SLICE / 3] {
        let section = [Step::Lock(0), compute(2 * TIME_SLICE / 5), Step::Sleep(hold), Step::Lock(1)];
        let rest = [compute(TIME_SLICE), Step::Unlock(1), Step::Unlock(0), Step::Done, compute(ns(1000))];
        let mut kernel = kernel(2, vec![spinning([&section[..], &rest].concat(), 5), hog()]);
        run(&mut kernel, 2, Time::ZERO, at(1000 * TIME_SLICE));
        // A round takes 1.4 slices, and what the holder sleeps; the lock is hardly ever free.
        let rounds = 1000 * TIME_SLICE / (7 * TIME_SLICE / 5 + hold);
        let done = kernel.stats()[AppId(0)].completed as i64;
        assert!((rounds * 9 / 10..=rounds).contains(&done), "{done} of {rounds} rounds");
        assert!(kernel.spin_ns() > Span::ZERO);
    }
}

#[test]
fn the_work_of_interrupts_spins_too() {
    let locked = spinning(vec![Step::Lock(0), compute(ns(10)), Step::Unlock(0), Step::Stop], 2);
    let mut kernel = kernel(2, vec![AppConfig { softirq: Softirq::All, ..locked }]);
    assert_eq!([0, 1].map(|vcpu| kernel.next(vcpu, Time::ZERO)), [Next::Run(ns(10)), Next::Spin]);
}

#[test]
fn a_first_sleep_that_is_over_at_once_loses_no_step() {
    let steps = vec![Step::Sleep(Span::ZERO), Step::Lock(0), compute(ns(10)), Step::Unlock(0), Step::Stop];
    let mut kernel = kernel(2, vec![spinning(steps, 2)]);
    assert_eq!([0, 1].map(|vcpu| kernel.next(vcpu, Time::ZERO)), [Next::Run(ns(10)), Next::Spin]);
}

#[test]
fn applications_have_locks_of_their_own_unless_they_meet() {
    let locked =
        |shares_sync_objects| AppConfig { shares_sync_objects, ..app(vec![Step::Lock(0), compute(ns(10))]) };
    let mut apart = kernel(2, vec![locked(false), locked(false)]);
    assert_eq!([0, 1].map(|vcpu| apart.next(vcpu, Time::ZERO)), [Next::Run(ns(10)); 2]);
    let mut together = kernel(2, vec![locked(true), locked(true)]);
    assert_eq!([0, 1].map(|vcpu| together.next(vcpu, Time::ZERO)), [Next::Run(ns(10)), Next::Idle]);
}

#[test]
fn who_waits_at_a_point_goes_on_when_another_wakes_it() {
    let lock = Step::Lock(0);
    let waits =
        [lock, Step::Wait { at: 1, unlocks: Some(0) }, lock, Step::Unlock(0), compute(ns(5)), Step::Done];
    for (all, woken) in [(false, 1), (true, 2)] {
        let wakes = [Step::Sleep(ns(10)), lock, Step::Wake { at: 1, all }, Step::Unlock(0), Step::Stop];
        let apps = [&waits[..], &waits, &wakes];
        let apps = apps.map(|steps| AppConfig { shares_sync_objects: true, ..app(steps.into()) });
        let mut kernel = kernel(1, apps.into());
        run(&mut kernel, 1, Time::ZERO, at(ns(100)));
        let completed: Vec<u64> = kernel.stats().iter().map(|stats| stats.completed).collect();
        assert_eq!(completed, [1, woken - 1, 0], "the first is woken first; then both wait again");
    }
}

#[test]
fn at_a_barrier_the_last_one_lets_all_go_on() {
    let steps = |cpu| vec![compute(cpu), Step::Barrier { at: 0, tasks: 3 }, Step::Done];
    let apps = [10, 20, 70].map(|cpu| AppConfig { shares_sync_objects: true, ..app(steps(ns(cpu))) });
    let mut kernel = kernel(3, apps.into());
    run(&mut kernel, 3, Time::ZERO, at(ns(701)));
    let completed: Vec<u64> = kernel.stats().iter().map(|stats| stats.completed).collect();
    assert_eq!(completed, [10; 3]);
    assert_eq!(kernel.stats()[AppId(0)].last_completed, Some(at(ns(700))));
}

#[test]
fn no_script_lets_time_stand_still() {
    let point = |steps: &[Step]| AppConfig { shares_sync_objects: true, ..app(steps.into()) };
    let there = Step::Wake { at: 0, all: true };
    let here = Step::Wait { at: 0, unlocks: None };
    let scripts: [&[Step]; 7] = [
        &[Step::Done],
        &[Step::Lock(0), Step::Unlock(0)],
        &[Step::Runtime(ns(0)), Step::Sleep(ns(0)), Step::Timer(ns(0)), compute(ns(0))],
        &[Step::Release(ns(0)), Step::Deadline(ns(0))],
        &[Step::Barrier { at: 0, tasks: 1 }],
        &[there, here],
        &[Step::Restart],
    ];
    for steps in scripts {
        for vcpus in [1, 2] {
            let mut kernel = kernel(vcpus, vec![point(steps), point(steps)]);
            run(&mut kernel, vcpus as usize, Time::ZERO, at(ns(5_000_000)));
        }
    }
}

#[test]
fn who_sleeps_often_gets_no_more_than_its_part_but_that_at_once() {
    // Ten workers would like the vCPU for themselves.
    let worker = || app(vec![compute(ns(1_000_000)), Step::Sleep(ns(5_000_000)), Step::Done]);
    let mut apps: Vec<AppConfig> = (0..10).map(|_| worker()).collect();
    apps.push(hog());
    let mut crowd = kernel(1, apps);
    run(&mut crowd, 1, Time::ZERO, at(1100 * TIME_SLICE));
    let completed: Vec<u64> = crowd.stats().iter().map(|stats| stats.completed).collect();
    assert!((900..1300).contains(&completed[10]), "{completed:?}: the hog's eleventh");
    assert!(completed[..10].iter().all(|done| (900..1100).contains(done)), "{completed:?}");

    // One that asks for a tenth is never kept waiting by a hog.
    let periodic =
        app(vec![Step::Release(ns(10_000_000)), compute(ns(1_000_000)), Step::Deadline(ns(1_000_000))]);
    let mut two = kernel(1, vec![periodic, hog()]);
    run(&mut two, 1, Time::ZERO, at(1000 * TIME_SLICE));
    let stats = &two.stats()[AppId(0)];
    assert!(stats.completed >= 998 && stats.failed == 0, "{stats:?}");
}

#[test]
fn where_locks_sleep_others_go_on_meanwhile() {
    let locked = |cpu| app(vec![Step::Lock(0), compute(cpu), Step::Unlock(0), Step::Stop]);
    let [first, second] =
        [20_000_000, 5].map(|cpu| AppConfig { shares_sync_objects: true, ..locked(ns(cpu)) });
    let mut kernel = kernel(1, vec![first, second, hog()]);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(TIME_SLICE));
    kernel.computed(0, TIME_SLICE);
    assert_eq!(kernel.next(0, at(TIME_SLICE)), Next::Run(TIME_SLICE), "the hog");
    kernel.computed(0, TIME_SLICE);
    assert_eq!(kernel.next(0, at(2 * TIME_SLICE)), Next::Run(TIME_SLICE), "the holder again");
    kernel.computed(0, TIME_SLICE);
    assert_eq!(kernel.next(0, at(3 * TIME_SLICE)), Next::Run(ns(5)), "it has the lock now");
}

#[test]
fn a_task_that_can_go_on_takes_a_vcpu_that_is_free() {
    let mut kernel = kernel(2, vec![hog(), app(vec![Step::Stop]), app(vec![Step::Sync, compute(ns(3))])]);
    assert_eq!((kernel.next(0, Time::ZERO), kernel.next(1, Time::ZERO)), (Next::Run(TIME_SLICE), Next::Idle));
    kernel.computed(0, TIME_SLICE);
    assert_eq!(kernel.next(0, Time::ZERO), Next::Io(TaskId(2), Io::Sync));
    kernel.wait(TaskId(2));
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(TIME_SLICE));
    kernel.resume(TaskId(2));
    assert_eq!((kernel.take_kick(), kernel.next(1, Time::ZERO)), (Some(1), Next::Run(ns(3))));
}

#[test]
fn an_unplugged_vcpu_leaves_its_tasks_to_another() {
    let mut kernel = kernel(2, vec![app(vec![Step::Stop]), hog()]);
    kernel.take_offline(1);
    assert_eq!((kernel.take_kick(), kernel.next(1, Time::ZERO)), (Some(0), Next::Idle));
    assert_eq!(kernel.next(0, Time::ZERO), Next::Run(TIME_SLICE));
}

#[test]
fn a_vcpu_that_is_plugged_again_takes_of_what_waits() {
    let mut kernel = kernel(2, vec![hog(), hog()]);
    kernel.take_offline(1);
    assert_eq!([0, 1].map(|vcpu| kernel.next(vcpu, Time::ZERO)), [Next::Run(TIME_SLICE), Next::Idle]);
    while kernel.take_kick().is_some() {}
    kernel.bring_online(1);
    assert_eq!(kernel.take_kick(), Some(1));
    assert_eq!([0, 1].map(|vcpu| kernel.next(vcpu, Time::ZERO)), [Next::Run(TIME_SLICE); 2]);
}
