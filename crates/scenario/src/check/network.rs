//! Network cards and interfaces in a scenario: whose they are, and what carries the packets.

use vcpulab_io::{DriverCosts, InterfaceConfig, Link, NetworkCosts, NicConfig, Owner};

use crate::check::{Checker, NamedDomain};
use crate::limits::CARDS_MAX;
use crate::problem::{Place, Problem};
use crate::profile::Constants;
use crate::raw::{RawCard, RawHost, RawNic, RawScenario};
use crate::read::{At, Field, Named};
use crate::spec::{DeviceSpec, DomainSpec, Drivers, Forwarding, NicSpec, Spec};

/// Where the drivers can be.
const DRIVERS: [(&str, Drivers); 2] =
    [("driver-domain", Drivers::Domains), ("hypervisor", Drivers::Hypervisor)];

/// How driver domains can forward packets.
const FORWARDING: [(&str, Forwarding); 2] =
    [("bridge", Forwarding::Bridge), ("routing", Forwarding::Routing)];

/// Segments in a packet of 64 KB, the largest that IP has.
const TSO_SEGMENTS: u32 = 44;

impl Checker<'_, '_> {
    pub(crate) fn drivers(&mut self, raw: &RawHost) -> Drivers {
        let drivers = self.choice(&raw.drivers, &DRIVERS, |(name, _)| name).map(|(_, drivers)| *drivers);
        match (raw.bare_metal.get(), &raw.drivers.0) {
            (Some(true), Some(At { place, .. })) => {
                self.report.error(place, Problem::says("on bare metal there is neither"));
                Drivers::BareMetal
            }
            (Some(true), None) => Drivers::BareMetal,
            _ => drivers.unwrap_or(Drivers::Domains),
        }
    }

    pub(crate) fn forwarding(&mut self, field: &Field<String>) -> Forwarding {
        let found = self.choice(field, &FORWARDING, |(word, _)| word);
        found.map_or(Forwarding::Bridge, |(_, forwarding)| *forwarding)
    }

    /// The cards, and the domains' interfaces to them.
    pub(crate) fn network(
        &mut self,
        spec: &mut Spec,
        raw: &RawScenario,
        raw_domains: &[&NamedDomain],
        place: &Place,
    ) {
        if spec.host.drivers == Drivers::BareMetal {
            self.bare_metal(spec, raw, place);
        }
        let given = raw.nic.get().map_or(&[][..], |named| &named.0);
        self.count(given.len(), 0, CARDS_MAX, "network cards", &place.member("nic"));
        for (name, At { value, place }) in given.iter().take(CARDS_MAX) {
            let card = self.device(name, place, &value.driver_domain, &value.vcpu, spec);
            spec.cards.extend(card);
        }
        if given.is_empty() {
            spec.cards = Self::usual_devices(spec);
            if spec.host.drivers == Drivers::Domains {
                // A stub domain has an interface, to another domain, instead.
                let is_stub = |owner: usize| {
                    let (name, raw) = raw_domains[owner];
                    let driver = raw.value.nic.get().and_then(|nic| nic.driver_domain.get());
                    driver.is_some_and(|driver| *driver != name.value)
                };
                spec.cards.retain(|card| !card.owner.is_some_and(is_stub));
            }
        }
        for (index, (_, raw)) in raw_domains.iter().enumerate().take(spec.domains.len()) {
            if let Some(At { value, place }) = &raw.value.nic.0 {
                let nic = self.interface(value, place, index, spec, raw_domains);
                spec.domains[index].nic = nic;
            }
        }
    }

    fn bare_metal(&mut self, spec: &Spec, raw: &RawScenario, place: &Place) {
        let one = spec.domains.len() == 1 && spec.domains[0].affinity.len() == spec.host.pcpus as usize;
        if !one {
            let pcpus = spec.host.pcpus;
            let problem = Problem::says(format!(
                "on bare metal there is one domain, with a vCPU for each of the {pcpus} pCPUs"
            ));
            self.report.error(&place.member("domain"), problem);
        }
        let scheduler = raw.host.get().and_then(|host| host.scheduler.0.as_ref());
        if let Some(At { place, .. }) = scheduler
            && spec.pools[0].policy.name != "null"
        {
            let problem =
                Problem::says("on bare metal nothing schedules vCPUs; their tasks share them in time slices");
            self.report
                .error(place, problem.hint("say `scheduler = \"null\"`, which leaves each where it is"));
        }
    }

    /// The driver domain that a field names, as far as the drivers are in domains.
    fn driver(&mut self, field: &Field<String>, place: &Place, spec: &Spec) -> Option<usize> {
        if spec.host.drivers != Drivers::Domains {
            if let Some(At { place, .. }) = &field.0 {
                self.report.error(place, Problem::says("the drivers are not in a domain here"));
            }
            return None;
        }
        if field.is_none() {
            self.report.error(&place.member("driver_domain"), Problem::says("required, but not given"));
        }
        let driver = self.domain(field, &spec.domains)?;
        let At { place, .. } = field.0.as_ref()?;
        let DomainSpec { name, driver_domain, .. } = &spec.domains[driver];
        if !driver_domain {
            let problem = Problem::says(format!("domain `{name}` is not a driver domain")).found(name);
            self.report.error(place, problem.hint(format!("set `driver_domain = true` in [domain.{name}]")));
        }
        Some(driver)
    }

    /// A device: whose it is, and who takes its interrupts.
    pub(crate) fn device(
        &mut self,
        name: &At<String>,
        place: &Place,
        driver_domain: &Field<String>,
        vcpu: &Field<i64>,
        spec: &Spec,
    ) -> Option<DeviceSpec> {
        self.identifier(name);
        let driver = self.driver(driver_domain, place, spec);
        let owner = match spec.host.drivers {
            Drivers::Domains => Some(driver?),
            Drivers::Hypervisor => None,
            Drivers::BareMetal => Some(0),
        };
        let vcpus = owner.and_then(|owner| spec.domains.get(owner)).map_or(1, |domain| domain.affinity.len());
        let vcpu = self.int(vcpu, 0, 0..=vcpus as i64 - 1)?;
        Some(DeviceSpec { name: Some(name.value.clone()), owner, vcpu: vcpu as u32 })
    }

    /// The device that a front end leads to, of those of its driver domain: the one named, or the first.
    pub(crate) fn device_of<'d>(
        &mut self,
        field: &Field<String>,
        driver: Option<usize>,
        what: &str,
        devices: impl Iterator<Item = &'d DeviceSpec> + Clone,
    ) -> Option<usize> {
        let Some(At { value, place }) = &field.0 else {
            return devices.clone().position(|device| driver.is_none() || device.owner == driver);
        };
        let found = devices.clone().position(|device| device.name.as_ref() == Some(value));
        match found {
            None => {
                let names: Vec<&str> = devices.filter_map(|device| device.name.as_deref()).collect();
                let hint = match names[..] {
                    [] => "none has a name here; leave this out".to_owned(),
                    _ => format!("known here: {}", names.join(", ")),
                };
                let problem = Problem::says(format!("there is no {what} `{value}`")).found(value);
                self.report.error(place, problem.hint(hint));
            }
            Some(index)
                if driver.is_some() && devices.clone().nth(index).is_some_and(|d| d.owner != driver) =>
            {
                let problem = Problem::says(format!("the {what} belongs to another domain")).found(value);
                self.report.error(place, problem);
            }
            Some(_) => {}
        }
        found
    }

    /// The driver domain of a front end in domain `own`; nothing if that is wrong.
    pub(crate) fn front_driver(
        &mut self,
        field: &Field<String>,
        place: &Place,
        own: usize,
        spec: &Spec,
    ) -> Option<Option<usize>> {
        let driver = self.driver(field, place, spec);
        if driver == Some(own) {
            let problem =
                Problem::says("a domain cannot be its own driver domain").found(&spec.domains[own].name);
            let place = field.0.as_ref().map_or(place, |at| &at.place);
            self.report.error(place, problem.hint("a driver domain owns the devices; leave this out"));
            return None;
        }
        (spec.host.drivers != Drivers::Domains || driver.is_some()).then_some(driver)
    }

    /// The devices that are there where a scenario gives none: one for each that may have some.
    pub(crate) fn usual_devices(spec: &Spec) -> Vec<DeviceSpec> {
        let device = |owner| DeviceSpec { name: None, owner, vcpu: 0 };
        match spec.host.drivers {
            Drivers::Domains => {
                let drivers = spec.domains.iter().enumerate().filter(|(_, domain)| domain.driver_domain);
                drivers.map(|(index, _)| device(Some(index))).collect()
            }
            Drivers::Hypervisor => vec![device(None)],
            Drivers::BareMetal => vec![device(Some(0))],
        }
    }

    /// Whose card the packets of a driver domain go to: its own, or that of the one behind its own interface, and so on.
    fn card_owner(
        &mut self,
        driver: usize,
        field: &Field<String>,
        spec: &Spec,
        raw_domains: &[&NamedDomain],
    ) -> Option<usize> {
        let next = |at: usize| {
            let name = raw_domains.get(at)?.1.value.nic.get()?.driver_domain.get()?;
            spec.domains.iter().position(|domain| domain.name == *name)
        };
        let mut at = driver;
        for _ in 0..=spec.domains.len() {
            if spec.cards.iter().any(|card| card.owner == Some(at)) {
                return Some(at);
            }
            let Some(behind) = next(at) else { break };
            at = behind;
        }
        let DomainSpec { name, driver_domain, .. } = &spec.domains[at];
        if !driver_domain {
            // That is what is wrong, and is said where it is named.
            return None;
        }
        let problem = match next(at) {
            Some(_) => Problem::says("the driver domains behind this interface lead in a circle")
                .hint("one of them owns the card"),
            None => Problem::says(format!("driver domain `{name}` owns no network card"))
                .hint(format!("add [nic.NAME] with `driver_domain = \"{name}\"`")),
        };
        self.report.error(&field.0.as_ref()?.place, problem);
        None
    }

    fn interface(
        &mut self,
        raw: &RawNic,
        place: &Place,
        own: usize,
        spec: &Spec,
        raw_domains: &[&NamedDomain],
    ) -> Option<NicSpec> {
        let driver = self.front_driver(&raw.driver_domain, place, own, spec)?;
        let owner = match driver {
            Some(driver) => Some(self.card_owner(driver, &raw.driver_domain, spec, raw_domains)?),
            None => None,
        };
        let card = self.device_of(&raw.card, owner, "network card", spec.cards.iter())?;
        let vcpus = |domain: usize| spec.domains[domain].affinity.len() as i64;
        let vcpu = self.int(&raw.vcpu, 0, 0..=vcpus(own) - 1)?;
        let driver_vcpu = self.int(&raw.driver_vcpu, 0, 0..=driver.map_or(1, vcpus) - 1)?;
        Some(NicSpec {
            driver,
            card,
            vcpu: vcpu as u32,
            driver_vcpu: driver_vcpu as u32,
            tso: raw.tso.get().copied().unwrap_or(false),
            checksum_offload: raw.checksum_offload.get().copied().unwrap_or(true),
            emulated: raw.emulated.get().copied().unwrap_or(false),
        })
    }
}

// ---- writing ----

/// The name of the domain that owns a device, where a file would say it.
pub(crate) fn raw_owner(device: &DeviceSpec, spec: &Spec) -> Field<String> {
    let owner = device.owner.filter(|_| spec.host.drivers == Drivers::Domains);
    owner.map_or_else(Field::default, |owner| spec.domains[owner].name.clone().into())
}

pub(crate) fn raw_cards(spec: &Spec) -> Field<Named<RawCard>> {
    let raw = |card: &DeviceSpec| {
        let raw = RawCard { driver_domain: raw_owner(card, spec), vcpu: i64::from(card.vcpu).into() };
        Some((card.name.clone()?.into(), raw.into()))
    };
    let cards: Vec<_> = spec.cards.iter().filter_map(raw).collect();
    if cards.is_empty() { Field::default() } else { Named(cards).into() }
}

pub(crate) fn raw_nic(nic: &NicSpec, spec: &Spec) -> RawNic {
    let name = |index: usize| Field::from(spec.domains[index].name.clone());
    RawNic {
        driver_domain: nic.driver.map_or_else(Field::default, name),
        card: spec.cards[nic.card].name.clone().map_or_else(Field::default, Field::from),
        vcpu: i64::from(nic.vcpu).into(),
        driver_vcpu: i64::from(nic.driver_vcpu).into(),
        tso: nic.tso.into(),
        checksum_offload: nic.checksum_offload.into(),
        emulated: nic.emulated.into(),
    }
}

pub(crate) fn raw_forwarding(forwarding: Forwarding) -> Field<String> {
    let word = FORWARDING.iter().find(|(_, known)| *known == forwarding).map(|(word, _)| (*word).to_owned());
    word.map_or_else(Field::default, Field::from)
}

pub(crate) fn raw_drivers(drivers: Drivers) -> (Field<String>, Field<bool>) {
    let word = DRIVERS.iter().find(|(_, known)| *known == drivers).map(|(word, _)| (*word).to_owned());
    match word {
        Some(word) => (word.into(), false.into()),
        None => (Field::default(), true.into()),
    }
}

// ---- running ----

pub(crate) fn cards(spec: &Spec) -> Vec<NicConfig> {
    let constants = &spec.host.constants;
    let config = |card: &DeviceSpec| NicConfig {
        owner: match card.owner {
            Some(guest) => Owner::Guest { guest, vcpu: card.vcpu },
            None => Owner::Hypervisor {
                receive_ns: constants.nic_receive_ns + constants.bridge_ns + constants.page_exchange_ns,
            },
        },
        bits_per_s: constants.nic_bits_per_s,
        interrupt_gap_ns: constants.nic_interrupt_gap_ns,
        latency_ns: constants.link_latency_ns,
        ring_slots: constants.ring_slots as usize,
    };
    spec.cards.iter().map(config).collect()
}

/// A domain's interface. One that owns a card has one to that, if it has no other.
pub(crate) fn interface(index: usize, spec: &Spec) -> Option<InterfaceConfig> {
    let ring_slots = spec.host.constants.ring_slots as usize;
    let config = |nic: &NicSpec, link| InterfaceConfig {
        link,
        nic: nic.card,
        vcpu: nic.vcpu,
        ring_slots,
        segments_max: if nic.tso { TSO_SEGMENTS } else { 1 },
        emulation_ns: if nic.emulated { spec.host.constants.emulation_ns } else { 0 },
    };
    let own = spec.cards.iter().position(|card| card.owner == Some(index));
    match (&spec.domains[index].nic, own) {
        (Some(nic), _) if nic.driver.is_some() => {
            Some(config(nic, Link::Driver { guest: nic.driver?, vcpu: nic.driver_vcpu }))
        }
        (Some(nic), Some(_)) => Some(config(nic, Link::Owner)),
        (Some(nic), None) => Some(config(nic, Link::Hypervisor)),
        (None, Some(card)) => {
            let nic = NicSpec {
                driver: None,
                card,
                vcpu: spec.cards[card].vcpu,
                driver_vcpu: 0,
                tso: false,
                checksum_offload: true,
                emulated: false,
            };
            Some(config(&nic, Link::Owner))
        }
        (None, None) => None,
    }
}

/// What the network costs inside a domain.
pub(crate) fn network_costs(domain: &DomainSpec, drivers: Drivers, constants: &Constants) -> NetworkCosts {
    let owns = drivers == Drivers::BareMetal || (domain.driver_domain && domain.nic.is_none());
    // The hypervisor's own driver is called for each packet sent.
    let sends = if drivers == Drivers::Hypervisor { constants.nic_send_ns + constants.grant_ns } else { 0 };
    let offloads = domain.nic.as_ref().is_none_or(|nic| nic.checksum_offload);
    let front =
        if owns { (0, 0) } else { (constants.frontend_receive_ns, constants.frontend_send_ns + sends) };
    NetworkCosts {
        upcall_ns: constants.guest_upcall_ns,
        receive_ns: constants.stack_receive_ns + front.0,
        send_ns: constants.stack_send_ns + front.1,
        byte_ps: constants.network_byte_ps + if offloads { 0 } else { constants.checksum_byte_ps },
        loopback_ns: constants.stack_receive_ns + constants.stack_send_ns,
        hypervisor_upcall_ns: if drivers == Drivers::BareMetal { 0 } else { constants.guest_upcall_ns },
        hypervisor_send_ns: if owns { 0 } else { sends },
    }
}

/// What the back ends cost in a domain that owns cards.
pub(crate) fn driver_costs(domain: &DomainSpec, drivers: Drivers, constants: &Constants) -> DriverCosts {
    let bare = drivers == Drivers::BareMetal;
    DriverCosts {
        upcall_ns: if bare { constants.native_interrupt_ns } else { constants.driver_upcall_ns },
        nic_receive_ns: constants.nic_receive_ns,
        nic_send_ns: constants.nic_send_ns,
        bridge_ns: match domain.forwarding {
            Forwarding::Bridge => constants.bridge_ns,
            Forwarding::Routing => constants.route_ns,
        },
        backend_receive_ns: constants.backend_receive_ns + constants.page_exchange_ns,
        backend_send_ns: constants.backend_send_ns + constants.grant_ns,
        bounce_ns: constants.bounce_ns,
        hypervisor_upcall_ns: if bare { 0 } else { constants.driver_upcall_ns },
        hypervisor_receive_ns: constants.page_exchange_ns,
        hypervisor_send_ns: constants.grant_ns,
    }
}
