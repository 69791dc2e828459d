//! Clients.

use vcpulab_guest::apps::{RequestClass, specweb99};
use vcpulab_host::Span;
use vcpulab_io::Load;
use vcpulab_spec::limits::{CLIENTS_MAX, MIX_MAX, STREAMS_MAX, USERS_MAX};
use vcpulab_spec::{AskSpec, ClientSpec, DomainSpec, Service, Spec};

use crate::check::apps::only_sends;
use crate::check::client_machines::machine_of;
use crate::check::devices::front_to;
use crate::check::fields::Checker;
use crate::file::raw::{FILE_SIZES, RawAsk, RawClient, RawClosedLoop, RawOpenLoop, RawScenario, RawStream};
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field, WordOrList};
use crate::text::units::{Duration, Size};
use crate::text::value::{choice, limited};

/// The mix of that name, and the kind of the service that has such files.
const SPECWEB99: (&str, &str) = ("specweb99", "web-server");

pub(crate) fn check(checker: &mut Checker<'_, '_>, raw: &RawScenario, spec: &mut Spec, place: &Place) {
    let clients = raw.client.get().map_or(&[][..], |named| &named.0);
    checker.count(clients.len(), 0, CLIENTS_MAX, "clients", &place.member("client"));
    for (name, At { value: raw, .. }) in clients.iter().take(CLIENTS_MAX) {
        checker.identifier(name);
        let client = match raw {
            RawClient::OpenLoop(raw) => open_loop(checker, raw, spec),
            RawClient::ClosedLoop(raw) => closed_loop(checker, raw, spec),
            RawClient::Stream(raw) => stream(checker, raw, spec),
        };
        let before = all_of(spec);
        if let Some(client) = client {
            spec.clients.push(ClientSpec { name: name.value.clone(), ..client });
        }
        // Said once, of the client that is too many.
        let after = all_of(spec);
        for (before, all, most, what) in
            [(before.0, after.0, STREAMS_MAX, "streams"), (before.1, after.1, USERS_MAX, "users")]
        {
            let most = u64::from(most);
            if before <= most && all > most {
                let allowed = format!("at most {most} {what} of all clients together");
                checker.report.error(&name.place, Problem::not_allowed(allowed).found(all));
            }
        }
    }
}

/// Streams and users of all clients. What an open loop may have outstanding takes no memory before it has.
fn all_of(spec: &Spec) -> (u64, u64) {
    spec.clients.iter().fold((0, 0), |(all_streams, all_users), client| match client.load {
        Load::Stream { streams, .. } => (all_streams + u64::from(streams), all_users),
        Load::Closed { users, .. } => (all_streams, all_users + u64::from(users)),
        Load::Open { .. } => (all_streams, all_users),
    })
}

fn open_loop(checker: &mut Checker<'_, '_>, raw: &RawOpenLoop, spec: &Spec) -> Option<ClientSpec> {
    let service = requests_to(checker, &raw.server, &raw.app, spec);
    let machine = machine_of(checker, &raw.machine, spec);
    let rate_per_s = raw.rate(checker.report);
    let mix = mix(checker, &raw.file_size, &raw.mix, service, spec);
    let connections_max = raw.connections_max(checker.report);
    let timeout = timeout(raw.timeout(checker.report), &raw.timeout);
    let load = Load::Open { rate_per_s: rate_per_s?, regular: raw.regular(checker.report) };
    Some(ClientSpec {
        name: String::new(),
        service: service?,
        machine: machine?,
        load,
        mix: mix?,
        connections_max,
        keep_alive: false,
        timeout: timeout?,
        retries: 0,
    })
}

fn closed_loop(checker: &mut Checker<'_, '_>, raw: &RawClosedLoop, spec: &Spec) -> Option<ClientSpec> {
    let service = requests_to(checker, &raw.server, &raw.app, spec);
    let machine = machine_of(checker, &raw.machine, spec);
    let users = raw.users(checker.report);
    let think_ns = raw.think(checker.report);
    let ramp_up_ns = raw.ramp_up(checker.report);
    let mix = mix(checker, &raw.file_size, &raw.mix, service, spec);
    let timeout = timeout(raw.timeout(checker.report), &raw.timeout);
    let retries = raw.retries(checker.report);
    let users = users?;
    Some(ClientSpec {
        name: String::new(),
        service: service?,
        machine: machine?,
        load: Load::Closed { users, think_ns, ramp_up_ns },
        mix: mix?,
        connections_max: users,
        keep_alive: raw.keep_alive(checker.report),
        timeout: timeout?,
        retries,
    })
}

fn stream(checker: &mut Checker<'_, '_>, raw: &RawStream, spec: &Spec) -> Option<ClientSpec> {
    let service = service(checker, &raw.server, &raw.app, spec);
    let machine = machine_of(checker, &raw.machine, spec);
    let streams = raw.streams(checker.report);
    let packet = raw.packet(checker.report);
    let gap_ns = raw.gap(checker.report);
    Some(ClientSpec {
        name: String::new(),
        service: service?,
        machine: machine?,
        load: Load::Stream { streams, packet_bytes: packet.0 as u32, gap_ns },
        mix: Vec::new(),
        connections_max: streams,
        keep_alive: true,
        timeout: None,
        retries: 0,
    })
}

/// `None` if it is wrong, otherwise the time, if one is given.
fn timeout(timeout: Option<Span>, field: &Field<Duration>) -> Option<Option<Span>> {
    (field.is_none() || timeout.is_some()).then_some(timeout)
}

/// The service that a client asks.
fn service(
    checker: &mut Checker<'_, '_>,
    field: &Field<String>,
    app: &Field<String>,
    spec: &Spec,
) -> Option<Service> {
    let server = checker.domain(field, &spec.domains)?;
    let place = &field.0.as_ref()?.place;
    let DomainSpec { name, apps, .. } = &spec.domains[server];
    let serves = |position: &usize| {
        let kind = apps[*position].kind();
        apps[*position].serves() && app.get().is_none_or(|app| app == kind)
    };
    let services: Vec<usize> = (0..apps.len()).filter(serves).collect();
    let what = app.get().map_or("service", String::as_str);
    match services[..] {
        [] => {
            let problem = Problem::says(format!("no {what} runs in domain `{name}`")).found(name);
            let hint = format!("add [[domain.{name}.app]] with `kind = \"web-server\"`");
            checker.report.error(place, problem.hint(only_sends(&spec.domains[server]).unwrap_or(hint)));
        }
        [_] => {}
        _ => {
            let count = services.len();
            let problem = Problem::says(format!("domain `{name}` runs {count} services; it must be one"));
            let mut kinds: Vec<&str> = services.iter().map(|&position| apps[position].kind()).collect();
            kinds.dedup();
            let hint = (kinds.len() > 1).then(|| format!("say which with `app`: {}", kinds.join(", ")));
            checker.report.error(place, problem.found(name).maybe_hint(hint));
        }
    }
    if !spec.domains[server].is_on_network() && !services.is_empty() {
        let problem = Problem::says(format!("domain `{name}` has no network interface")).found(name);
        checker
            .report
            .error(place, problem.hint(format!("add `nic = {}` to [domain.{name}]", front_to(spec))));
    }
    Some(Service { domain: server, app: *services.first()? })
}

/// The service that a client of requests asks: one that answers them.
fn requests_to(
    checker: &mut Checker<'_, '_>,
    field: &Field<String>,
    app: &Field<String>,
    spec: &Spec,
) -> Option<Service> {
    let service = service(checker, field, app, spec)?;
    let app = &spec.domains[service.domain].apps[service.app];
    if app.classes().iter().any(|class| class.reply_bytes > 0) {
        return Some(service);
    }
    let At { value: name, place } = field.0.as_ref()?;
    let message = format!("the `{}` of domain `{name}` takes streams and answers no requests", app.kind());
    let hint = "a client of `kind = \"stream\"` sends to it";
    checker.report.error(place, Problem::says(message).found(name).hint(hint));
    None
}

/// The requests of a client: `mix`, or requests of the first class with answers of `file_size`, or all classes as often
/// as usual.
fn mix(
    checker: &mut Checker<'_, '_>,
    size: &Field<Size>,
    mix: &Field<WordOrList<RawAsk>>,
    service: Option<Service>,
    spec: &Spec,
) -> Option<Vec<AskSpec>> {
    let Some(Service { domain, app }) = service else {
        limited(size, FILE_SIZES, checker.report);
        return None;
    };
    let classes = spec.domains[domain].apps[app].classes();
    let Some(At { value: asks, place }) = &mix.0 else {
        if !size.is_none() {
            let reply_bytes = limited(size, FILE_SIZES, checker.report)?.0 as u32;
            return Some(vec![AskSpec { class: 0, reply_bytes, weight: 1 }]);
        }
        let all = classes.iter().enumerate().filter(|(_, class)| class.weight > 0);
        let usual = |(number, class): (usize, &RequestClass)| AskSpec {
            class: number as u32,
            reply_bytes: class.reply_bytes,
            weight: class.weight,
        };
        return Some(all.map(usual).collect());
    };
    if let Some(At { place, .. }) = &size.0 {
        checker.report.error(place, Problem::says("`file_size` and `mix` cannot both be given"));
    }
    let asks = match asks {
        WordOrList::List(asks) => asks,
        WordOrList::Word(word) => {
            return mix_by_name(checker, word, spec.domains[domain].apps[app].kind(), place);
        }
    };
    if !checker.count(asks.len(), 1, MIX_MAX, "kinds of requests", place) {
        return None;
    }
    let asks: Vec<Option<AskSpec>> = asks.iter().map(|ask| one_ask(checker, &ask.value, classes)).collect();
    asks.into_iter().collect()
}

fn mix_by_name(checker: &mut Checker<'_, '_>, word: &str, kind: &str, place: &Place) -> Option<Vec<AskSpec>> {
    let (name, server) = SPECWEB99;
    if word != name {
        checker.report.error(place, Problem::not_allowed(format!("a list, or `\"{name}\"`")));
        return None;
    }
    if kind != server {
        let problem = Problem::says(format!("`{name}` is for a `{server}`; here it is a `{kind}`"));
        checker.report.error(place, problem.found(word));
        return None;
    }
    let ask =
        |file: &specweb99::FileSize| AskSpec { class: 0, reply_bytes: file.bytes, weight: file.requests };
    Some(specweb99::SIZES.iter().map(ask).collect())
}

fn one_ask(checker: &mut Checker<'_, '_>, raw: &RawAsk, classes: &[RequestClass]) -> Option<AskSpec> {
    let class = match &raw.class.0 {
        None => Some(0),
        Some(At { value, place }) => {
            let words: Vec<_> = classes.iter().zip(0..).map(|(class, number)| (class.name, number)).collect();
            choice(value, &words, place, checker.report)
        }
    };
    let usual = Size(classes[class.unwrap_or(0) as usize].reply_bytes.into());
    let reply = raw.file_size(usual, checker.report);
    let weight = raw.weight(checker.report);
    Some(AskSpec { class: class?, reply_bytes: reply?.0 as u32, weight })
}

#[cfg(test)]
mod tests {
    use vcpulab_io::ClientId;

    use crate::Scenario;

    const RECEIVER: &str = "kind = \"iperf\", direction = \"receive\"";

    fn text(app: &str, client: &str) -> String {
        format!(
            "[host]\nprofile = \"generic\"\nscheduler = \"credit\"\n[domain.dom0]\ndriver_domain = true\n\
             [domain.a]\nnic.driver_domain = \"dom0\"\ndisk.driver_domain = \"dom0\"\napp = [{{ {app} }}]\n[client.c]\nkind = \"closed-loop\"\nserver = \"a\"\nusers = 1\n{client}\n"
        )
    }

    fn scenario(app: &str, client: &str) -> Result<Scenario, String> {
        Scenario::parse(&text(app, client), "f").map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_client_asks_for_all_classes_as_often_as_usual_unless_it_is_told_otherwise() {
        let kind = vcpulab_guest::apps::find("exchange").unwrap();
        let mix = &scenario(
            "kind = \"exchange\", directory = \"a\" }, { kind = \"active-directory\"",
            "app = \"exchange\"",
        )
        .unwrap()
        .clients[ClientId(0)]
        .mix;
        let usual = kind
            .classes
            .iter()
            .map(|class| (class.reply_bytes, class.weight))
            .filter(|(_, weight)| *weight > 0);
        assert!(mix.len() > 1);
        assert!(mix.iter().map(|ask| (ask.reply_bytes, ask.weight)).eq(usual));
        let one = scenario("kind = \"mysql\"", "file_size = 77").unwrap();
        assert_eq!(
            one.clients[ClientId(0)].mix.iter().map(|ask| (ask.class, ask.reply_bytes)).collect::<Vec<_>>(),
            [(0, 77)]
        );
    }

    #[test]
    fn the_files_of_specweb99_are_a_mix_for_web_servers() {
        let web = scenario("kind = \"web-server\"", "mix = \"specweb99\"").unwrap();
        let mix = &web.clients[ClientId(0)].mix;
        assert_eq!((mix.len(), mix[0].reply_bytes, mix[35].reply_bytes), (36, 102, 900 << 10));
        assert_eq!(Scenario::parse(&web.to_toml(), "again").as_ref(), Ok(&web));
        let wrong = scenario("kind = \"mysql\"", "mix = \"specweb99\"").unwrap_err();
        assert!(wrong.contains("`specweb99` is for a `web-server`; here it is a `mysql`"), "{wrong}");
        let wrong = scenario("kind = \"web-server\"", "mix = \"specweb\"").unwrap_err();
        assert!(wrong.contains("allowed: a list, or `\"specweb99\"`"), "{wrong}");
    }

    #[test]
    fn every_client_that_is_accepted_reads_back_and_the_others_are_refused_with_a_reason() {
        let stream = "gap = \"1ms\"\nstreams = 2";
        let clients = [
            ("closed-loop", "users = 1\ntimeout = \"5ms\"\nretries = 3"),
            ("open-loop", "rate = 7.5"),
            ("stream", stream),
        ];
        let servers = [
            "kind = \"web-server\"",
            "kind = \"mysql\"",
            "kind = \"nfs\"",
            "kind = \"tcp-receiver\"",
            RECEIVER,
        ];
        for (server, (kind, client)) in
            servers.iter().flat_map(|server| clients.map(|client| (server, client)))
        {
            let takes_streams = *server == RECEIVER || server.contains("tcp-receiver");
            let text = text(server, client).replace("closed-loop", kind).replace("users = 1\nusers", "users");
            let text = if kind == "closed-loop" { text } else { text.replacen("users = 1\n", "", 1) };
            match Scenario::parse(&text, "f") {
                Ok(scenario) => {
                    assert!(!takes_streams || kind == "stream", "{text}");
                    assert_eq!(Scenario::parse(&scenario.to_toml(), "again").as_ref(), Ok(&scenario));
                }
                Err(problems) => {
                    let problems = problems.to_string();
                    assert!(takes_streams && kind != "stream", "{text}\n{problems}");
                    assert!(
                        problems.contains("of domain `a` takes streams and answers no requests"),
                        "{problems}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_application_that_sends_takes_no_clients() {
        let wrong = scenario("kind = \"iperf\"", "").unwrap_err();
        assert!(wrong.contains("no service runs in domain `a`"), "{wrong}");
        assert!(
            wrong.contains("hint: its `iperf` sends; `direction = \"receive\"` makes it a service"),
            "{wrong}"
        );
        assert!(
            Scenario::parse(
                &text(RECEIVER, "").replace("closed-loop\"", "stream\"").replace("users = 1", ""),
                "f"
            )
            .is_ok()
        );
        let wrong = scenario("kind = \"tcp-sender\", to = \"a\" }, { kind = \"iperf\"", "").unwrap_err();
        assert!(wrong.contains("must run one `tcp-receiver` or `iperf`"), "{wrong}");
    }
}
