"""The messages that the turns of a vCPU sent, as far as wake-ups show them."""

from collections.abc import Mapping
from dataclasses import replace

from vcpulab.twin.links import Vcpu
from vcpulab.twin.messages.turns import Action, Beliefs


def with_sent(sender: Beliefs, beliefs: Mapping[Vcpu, Beliefs]) -> Beliefs:
    """The beliefs with the messages that each turn sent; turns of targets that a tick or a timer began show none."""
    begins: dict[tuple[int, Vcpu], list[int]] = {}
    by_itself: dict[tuple[int, Vcpu], list[bool]] = {}
    for target in (beliefs[each.vcpu] for each in sender.targets):
        for at, turn in enumerate(target.turns[:-1]):
            if turn.blocked == sender.vcpu:
                by_itself.setdefault((turn.sender_turn, target.vcpu), []).append(target.by_itself(at + 1))
                if not target.by_itself(at + 1):
                    begins.setdefault((turn.sender_turn, target.vcpu), []).append(at + 1)
    computes: list[list[Action]] = []
    for number, turn in enumerate(sender.turns):
        actions: list[Action] = []
        held = 0
        for cpu, woken in turn.computes:
            held += cpu
            wakes = by_itself.get((number, woken)) if woken is not None else None
            if wakes and not wakes.pop(0):
                actions.append((held, woken))
                held = 0
        computes.append([*actions, (held, None)])
    sends = [{woken for _, woken in actions if woken is not None} for actions in computes]
    return replace(sender, begins=begins, computes=computes, sends=sends)
