//! A step of a packet, from its beginning, when a vCPU takes the packet, to its end, when the packet is in its next place.

use vcpulab_host::{IoKind, Time, VcpuId, WorldContext};

use super::cost::{DeviceCosts, PacketCosts};
use super::legs::Place;
use super::route::{Hop, Origin, Step};
use crate::driver_domain::DriverDomains;
use crate::ids::{GuestVcpu, PacketId};
use crate::layers::Layers;
use crate::network::Network;

/// Begins the step of a packet that a vCPU takes: decides it, and says what it costs.
#[inline]
pub(crate) fn begin(
    network: &mut Network,
    now: Time,
    at: GuestVcpu,
    vcpu: VcpuId,
    from: Origin,
    packet: PacketId,
    costs: &PacketCosts,
) -> (Step, Layers) {
    let place = match from {
        Origin::Nic(_) | Origin::Thread(_) | Origin::RingOut(_) => Place::Netback,
        Origin::RingIn(_) | Origin::Loopback => Place::Receive,
        Origin::SendQueue(_) => Place::Send,
    };
    network.enters(now, packet, place, Some(vcpu));
    let step = Step { from, packet, hop: network.routes.hop(at, from, network.destination(packet)) };
    let devices = touch(network, &step, vcpu);
    (step, costs.step(&step, &network.packets[packet], devices))
}

/// Notes that a vCPU works at the devices of a step from now on.
#[inline]
fn touch(network: &mut Network, step: &Step, vcpu: VcpuId) -> DeviceCosts {
    let mut bounces = 0;
    match step.from {
        Origin::Nic(nic) => bounces += i64::from(network.nics[nic].touch(vcpu)),
        Origin::RingOut(netfront) => {
            bounces += i64::from(network.netfronts[netfront].touch(vcpu));
            if let Hop::Link(nic) = step.hop {
                bounces += i64::from(network.nics[nic].touch(vcpu));
            }
        }
        _ => {}
    }
    let emulated = match (step.from, step.hop) {
        (Origin::Thread(netfront) | Origin::RingOut(netfront), _) | (_, Hop::RingIn(netfront)) => {
            Some(netfront)
        }
        _ => None,
    };
    let emulation = emulated.map(|netfront| network.netfronts[netfront].emulation_ns).unwrap_or_default();
    DeviceCosts { bounces, emulation }
}

/// Ends the step of a packet: carries it to its next place. The packet, if it is for the domain itself.
///
/// The connection of the packet may have ended since the step began: then the packet is dropped, or leaves by the link.
pub(crate) fn carry(
    ctx: &mut WorldContext<'_>,
    network: &mut Network,
    drivers: &mut DriverDomains,
    at: GuestVcpu,
    step: Step,
) -> Option<PacketId> {
    let Step { from, packet, .. } = step;
    let hop = match step.hop {
        // These do not depend on the connection.
        Hop::RingOut(_) | Hop::LinkBelow(_) => step.hop,
        _ => network.confirm(at, step),
    };
    match from {
        Origin::Nic(nic) => network.nics[nic].counts.strays += u64::from(hop == Hop::Nowhere),
        Origin::Thread(netfront) => network.netfronts[netfront].take_left(),
        Origin::SendQueue(own) => network.netfronts[own].sent(packet, &network.packets),
        Origin::RingOut(_) | Origin::RingIn(_) | Origin::Loopback => {}
    }
    match hop {
        Hop::Here => return Some(packet),
        Hop::Nowhere => _ = network.packets.remove(packet),
        Hop::Link(nic) | Hop::LinkBelow(nic) => network.put_on_link(ctx, nic, packet),
        Hop::SendQueue(own) => {
            network.enters(ctx.now(), packet, Place::SendQueue, None);
            network.netfronts[own].enqueue(packet);
        }
        Hop::RingOut(own) => {
            network.enters(ctx.now(), packet, Place::RingOut, None);
            let first = network.netfronts[own].put(packet, &network.packets);
            network.report_ring(ctx, IoKind::EnterRing, own, packet);
            let netback = network.netfronts[own].uplink.netback()?;
            drivers.ring_filled(ctx, netback, own, first);
        }
        Hop::Thread(netfront) => {
            network.enters(ctx.now(), packet, Place::Thread, None);
            let netback = network.netfronts[netfront].uplink.netback()?;
            match network.netfronts[netfront].leave(packet) {
                Err(packet) => network.lose(ctx, packet),
                Ok(packet) => drivers.leave(ctx, netback, netfront, packet),
            }
        }
        Hop::RingIn(netfront) => {
            network.enters(ctx.now(), packet, Place::RingIn, None);
            // A domain that sends a packet of its own, or receives it from a driver domain, is not in a poll at whose end the
            // guest would be notified.
            let own = match from {
                Origin::RingIn(own) | Origin::SendQueue(own) => Some(own),
                _ => None,
            };
            match network.netfronts[netfront].deliver(packet) {
                Err(packet) => network.lose(ctx, packet),
                Ok(notify) => {
                    network.report_ring(ctx, IoKind::EnterRing, netfront, packet);
                    if notify {
                        let number = own.map_or(at.number, |own| network.netfronts[own].vcpu_number);
                        drivers.notify_later(GuestVcpu { number, ..at }, netfront);
                    }
                }
            }
            if own.is_some() {
                network.netfronts[netfront].send_event(ctx);
            }
        }
    }
    None
}
