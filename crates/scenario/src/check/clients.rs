//! Clients in a scenario: checked, written back, and as the engine takes them.

use vcpulab_guest::apps::{RequestClass, specweb99};
use vcpulab_host::Span;
use vcpulab_io::{Ask, ClientConfig, Load};

use crate::apps::{classes, only_sends};
use crate::check::Checker;
use crate::client_machines::raw_machine_of;
use crate::limits::{CLIENTS_MAX, CONNECTIONS_MAX, FILE_SIZE_MAX, MIX_MAX, SPAN_NS_MAX};
use crate::problem::{Place, Problem, did_you_mean};
use crate::raw::{RawAsk, RawClient, RawClosedLoop, RawOpenLoop, RawScenario, RawStream};
use crate::read::{At, Field, Number, WordOrList};
use crate::spec::{AskSpec, ClientSpec, DomainSpec, Spec};
use crate::units::{Duration, Size};

/// Defaults of what a file may leave out.
const CONNECTIONS: i64 = 64;
const PACKET_BYTES: i64 = 1448;
const WEIGHT_MAX: i64 = 1_000_000;
const RETRIES_MAX: i64 = 1000;

/// The mix of that name, and the kind of the service that has such files.
const SPECWEB99: (&str, &str) = ("specweb99", "web-server");

impl Checker<'_, '_> {
    pub(crate) fn clients(&mut self, raw: &RawScenario, spec: &mut Spec, place: &Place) {
        let clients = raw.client.get().map_or(&[][..], |named| &named.0);
        self.count(clients.len(), 0, CLIENTS_MAX, "clients", &place.member("client"));
        for (name, At { value: raw, .. }) in clients.iter().take(CLIENTS_MAX) {
            self.identifier(name);
            let client = match raw {
                RawClient::OpenLoop(raw) => self.open_loop(raw, spec),
                RawClient::ClosedLoop(raw) => self.closed_loop(raw, spec),
                RawClient::Stream(raw) => self.stream(raw, spec),
            };
            if let Some(client) = client {
                spec.clients.push(ClientSpec { name: name.value.clone(), ..client });
            }
        }
    }

    fn open_loop(&mut self, raw: &RawOpenLoop, spec: &Spec) -> Option<ClientSpec> {
        let service = self.service(&raw.server, &raw.app, spec);
        let machine = self.machine_of(&raw.machine, spec);
        let rate_per_s = self.rate(&raw.rate);
        let mix = self.mix(&raw.file_size, &raw.mix, service, spec);
        let connections_max = self.int(&raw.connections_max, CONNECTIONS, 1..=CONNECTIONS_MAX.into());
        let timeout_ns = self.timeout(&raw.timeout);
        let load =
            Load::Open { rate_per_s: rate_per_s?, regular: raw.regular.get().copied().unwrap_or(false) };
        Some(ClientSpec {
            name: String::new(),
            service: service?,
            machine: machine?,
            load,
            mix: mix?,
            connections_max: connections_max? as u32,
            keep_alive: false,
            timeout_ns: timeout_ns?,
            retries: 0,
        })
    }

    fn closed_loop(&mut self, raw: &RawClosedLoop, spec: &Spec) -> Option<ClientSpec> {
        let service = self.service(&raw.server, &raw.app, spec);
        let machine = self.machine_of(&raw.machine, spec);
        let users = self.int(&raw.users, 1, 1..=CONNECTIONS_MAX.into());
        let think_ns = self.span(&raw.think, Some(0), 0..=SPAN_NS_MAX);
        let ramp_up_ns = self.span(&raw.ramp_up, Some(0), 0..=SPAN_NS_MAX);
        let mix = self.mix(&raw.file_size, &raw.mix, service, spec);
        let timeout_ns = self.timeout(&raw.timeout);
        let retries = self.int(&raw.retries, 0, 0..=RETRIES_MAX);
        let users = users? as u32;
        Some(ClientSpec {
            name: String::new(),
            service: service?,
            machine: machine?,
            load: Load::Closed { users, think_ns: think_ns?, ramp_up_ns: ramp_up_ns? },
            mix: mix?,
            connections_max: users,
            keep_alive: raw.keep_alive.get().copied().unwrap_or(true),
            timeout_ns: timeout_ns?,
            retries: retries? as u32,
        })
    }

    fn stream(&mut self, raw: &RawStream, spec: &Spec) -> Option<ClientSpec> {
        let service = self.service(&raw.server, &raw.app, spec);
        let machine = self.machine_of(&raw.machine, spec);
        let streams = self.int(&raw.streams, 1, 1..=CONNECTIONS_MAX.into());
        let packet = self.size(&raw.packet, PACKET_BYTES, 1..=FILE_SIZE_MAX as i64);
        let gap_ns = self.span(&raw.gap, Some(0), 0..=SPAN_NS_MAX);
        let streams = streams? as u32;
        Some(ClientSpec {
            name: String::new(),
            service: service?,
            machine: machine?,
            load: Load::Stream { streams, packet_bytes: packet? as u32, gap_ns: gap_ns? },
            mix: Vec::new(),
            connections_max: streams,
            keep_alive: true,
            timeout_ns: None,
            retries: 0,
        })
    }

    /// `None` if it is wrong, otherwise the time, if one is given.
    fn timeout(&mut self, field: &Field<Duration>) -> Option<Option<Span>> {
        match field.is_none() {
            true => Some(None),
            false => self.span(field, None, 1..=SPAN_NS_MAX).map(Some),
        }
    }

    /// The service that a client asks: domain, and position among its applications.
    fn service(&mut self, field: &Field<String>, app: &Field<String>, spec: &Spec) -> Option<(usize, usize)> {
        let server = self.domain(field, &spec.domains)?;
        let place = &field.0.as_ref()?.place;
        let DomainSpec { name, apps, nic, driver_domain, .. } = &spec.domains[server];
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
                self.report.error(place, problem.hint(only_sends(&spec.domains[server]).unwrap_or(hint)));
            }
            [_] => {}
            _ => {
                let count = services.len();
                let problem = Problem::says(format!("domain `{name}` runs {count} services; it must be one"));
                let mut kinds: Vec<&str> = services.iter().map(|&position| apps[position].kind()).collect();
                kinds.dedup();
                let hint = (kinds.len() > 1).then(|| format!("say which with `app`: {}", kinds.join(", ")));
                self.report.error(place, problem.found(name).maybe_hint(hint));
            }
        }
        if nic.is_none() && !driver_domain && !services.is_empty() {
            let problem = Problem::says(format!("domain `{name}` has no network interface")).found(name);
            self.report.error(
                place,
                problem.hint(format!("add `nic = {{ driver_domain = \"dom0\" }}` to [domain.{name}]")),
            );
        }
        Some((server, *services.first()?))
    }

    /// What a client asks for: `mix`, or requests of the first class with answers of `file_size`, or all classes as often
    /// as usual.
    fn mix(
        &mut self,
        size: &Field<Size>,
        mix: &Field<WordOrList<RawAsk>>,
        service: Option<(usize, usize)>,
        spec: &Spec,
    ) -> Option<Vec<AskSpec>> {
        let sizes = 1..=FILE_SIZE_MAX as i64;
        let Some((domain, app)) = service else {
            self.size(size, 1, sizes);
            return None;
        };
        let classes = classes(&spec.domains[domain].apps[app]);
        let Some(At { value: asks, place }) = &mix.0 else {
            if !size.is_none() {
                let reply_bytes = self.size(size, 1, sizes)? as u32;
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
            self.report.error(place, Problem::says("`file_size` and `mix` cannot both be given"));
        }
        let asks = match asks {
            WordOrList::List(asks) => asks,
            WordOrList::Word(word) => {
                return self.mix_by_name(word, spec.domains[domain].apps[app].kind(), place);
            }
        };
        if !self.count(asks.len(), 1, MIX_MAX, "kinds of requests", place) {
            return None;
        }
        let asks: Vec<Option<AskSpec>> = asks.iter().map(|ask| self.one_ask(&ask.value, classes)).collect();
        asks.into_iter().collect()
    }

    fn mix_by_name(&mut self, word: &str, kind: &str, place: &Place) -> Option<Vec<AskSpec>> {
        let (name, server) = SPECWEB99;
        if word != name {
            self.report.error(place, Problem::not_allowed(format!("a list, or `\"{name}\"`")));
            return None;
        }
        if kind != server {
            let problem = Problem::says(format!("`{name}` is for a `{server}`; here it is a `{kind}`"));
            self.report.error(place, problem.found(word));
            return None;
        }
        let ask =
            |file: &specweb99::FileSize| AskSpec { class: 0, reply_bytes: file.bytes, weight: file.requests };
        Some(specweb99::SIZES.iter().map(ask).collect())
    }

    fn one_ask(&mut self, raw: &RawAsk, classes: &[RequestClass]) -> Option<AskSpec> {
        let class = match &raw.class.0 {
            None => Some(0),
            Some(At { value, place }) => {
                let found = classes.iter().position(|class| class.name == value);
                if found.is_none() {
                    let words: Vec<&str> = classes.iter().map(|class| class.name).collect();
                    let problem = Problem::not_allowed(format!("one of {}", words.join(", ")));
                    self.report.error(place, problem.maybe_hint(did_you_mean(value, words)));
                }
                found
            }
        };
        let usual = i64::from(classes[class.unwrap_or(0)].reply_bytes);
        let reply = self.size(&raw.file_size, usual, 1..=FILE_SIZE_MAX as i64);
        let weight = self.int(&raw.weight, 1, 1..=WEIGHT_MAX);
        Some(AskSpec { class: class? as u32, reply_bytes: reply? as u32, weight: weight? as u32 })
    }
}

/// A checked client as a file would say it.
pub(crate) fn raw_client(client: &ClientSpec, spec: &Spec) -> RawClient {
    let (domain, app) = client.service;
    let domain = &spec.domains[domain];
    let server = || Field::from(domain.name.clone());
    let kind = || Field::from(domain.apps[app].kind().to_owned());
    let classes = classes(&domain.apps[app]);
    let machine = || raw_machine_of(client.machine, spec);
    let timeout = || client.timeout_ns.map_or_else(Field::default, |span| Duration(span).into());
    let ask = |ask: &AskSpec| RawAsk {
        class: classes[ask.class as usize].name.to_owned().into(),
        file_size: Size(ask.reply_bytes.into()).into(),
        weight: i64::from(ask.weight).into(),
    };
    let mix = || Field::from(WordOrList::List(client.mix.iter().map(|one| ask(one).into()).collect()));
    match client.load {
        Load::Open { rate_per_s, regular } => RawClient::OpenLoop(RawOpenLoop {
            server: server(),
            app: kind(),
            machine: machine(),
            rate: Number(rate_per_s).into(),
            regular: regular.into(),
            file_size: Field::default(),
            mix: mix(),
            connections_max: i64::from(client.connections_max).into(),
            timeout: timeout(),
        }),
        Load::Closed { users, think_ns, ramp_up_ns } => RawClient::ClosedLoop(RawClosedLoop {
            server: server(),
            app: kind(),
            machine: machine(),
            users: i64::from(users).into(),
            think: Duration(think_ns).into(),
            ramp_up: Duration(ramp_up_ns).into(),
            file_size: Field::default(),
            mix: mix(),
            keep_alive: client.keep_alive.into(),
            timeout: timeout(),
            retries: i64::from(client.retries).into(),
        }),
        Load::Stream { streams, packet_bytes, gap_ns } => RawClient::Stream(RawStream {
            server: server(),
            app: kind(),
            machine: machine(),
            streams: i64::from(streams).into(),
            packet: Size(packet_bytes.into()).into(),
            gap: Duration(gap_ns).into(),
        }),
    }
}

/// A client as the engine takes it, which asks the service of this number.
pub(crate) fn config(client: &ClientSpec, service: usize, spec: &Spec) -> ClientConfig {
    let classes = classes(&spec.domains[client.service.0].apps[client.service.1]);
    let ask = |ask: &AskSpec| Ask {
        class: ask.class,
        request_bytes: classes[ask.class as usize].request_bytes,
        reply_bytes: ask.reply_bytes,
        weight: ask.weight,
    };
    ClientConfig {
        machine: client.machine,
        service,
        load: client.load,
        mix: client.mix.iter().map(ask).collect(),
        connections_max: client.connections_max,
        keep_alive: client.keep_alive,
        timeout_ns: client.timeout_ns,
        retries: client.retries,
    }
}

/// The kind of a client, in the scenario's word.
pub(crate) fn kind(client: &ClientSpec) -> &'static str {
    match client.load {
        Load::Open { .. } => "open-loop",
        Load::Closed { .. } => "closed-loop",
        Load::Stream { .. } => "stream",
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    fn scenario(app: &str, client: &str) -> Result<Scenario, String> {
        let text = format!(
            "[host]\nprofile = \"generic\"\nscheduler = \"credit\"\n[domain.dom0]\ndriver_domain = true\n\
             [domain.a]\nnic.driver_domain = \"dom0\"\ndisk.driver_domain = \"dom0\"\napp = [{{ {app} }}]\n[client.c]\nkind = \"closed-loop\"\nserver = \"a\"\nusers = 1\n{client}\n"
        );
        Scenario::parse(&text, "f").map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_client_asks_for_all_classes_as_often_as_usual_unless_it_is_told_otherwise() {
        let kind = vcpulab_guest::apps::find("exchange").unwrap();
        let mix = &scenario(
            "kind = \"exchange\", directory = \"a\" }, { kind = \"active-directory\"",
            "app = \"exchange\"",
        )
        .unwrap()
        .clients[0]
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
            one.clients[0].mix.iter().map(|ask| (ask.class, ask.reply_bytes)).collect::<Vec<_>>(),
            [(0, 77)]
        );
    }

    #[test]
    fn the_files_of_specweb99_are_a_mix_for_web_servers() {
        let web = scenario("kind = \"web-server\"", "mix = \"specweb99\"").unwrap();
        let mix = &web.clients[0].mix;
        assert_eq!((mix.len(), mix[0].reply_bytes, mix[35].reply_bytes), (36, 102, 900 << 10));
        assert_eq!(Scenario::parse(&web.to_toml(), "again").as_ref(), Ok(&web));
        let wrong = scenario("kind = \"mysql\"", "mix = \"specweb99\"").unwrap_err();
        assert!(wrong.contains("`specweb99` is for a `web-server`; here it is a `mysql`"), "{wrong}");
        let wrong = scenario("kind = \"web-server\"", "mix = \"specweb\"").unwrap_err();
        assert!(wrong.contains("allowed: a list, or `\"specweb99\"`"), "{wrong}");
    }

    #[test]
    fn an_application_that_sends_takes_no_clients() {
        let wrong = scenario("kind = \"iperf\"", "").unwrap_err();
        assert!(wrong.contains("no service runs in domain `a`"), "{wrong}");
        assert!(
            wrong.contains("hint: its `iperf` sends; `direction = \"receive\"` makes it a service"),
            "{wrong}"
        );
        assert!(scenario("kind = \"iperf\", direction = \"receive\"", "").is_ok());
        let wrong = scenario("kind = \"tcp-sender\", to = \"a\" }, { kind = \"iperf\"", "").unwrap_err();
        assert!(wrong.contains("must run one `tcp-receiver` or `iperf`"), "{wrong}");
    }
}
