"""Scenarios by chance: any scheduler, any of its parameters, any applications, with and without a network."""

import re
from random import Random
from typing import Any

import vcpulab
from vcpulab.errors import ScenarioError
from vcpulab.scenario.catalogue import schedulers

APPS = (
    '{ kind = "hog" }',
    '{ kind = "periodic", run = "%dus", period = "%dus" }',
    '{ kind = "phases", loop = -1, phase = [{ loop = 3, event = [{ run = "%dus" }, { sleep = "%dus" }] }] }',
)


def random_scenario(seed: int) -> str:
    """A scenario that is right; the same for the same seed."""
    random = Random(seed)
    while True:
        text = _text(random)
        try:
            vcpulab.Scenario.from_toml(text)
        except ScenarioError:
            continue
        return text


def _text(random: Random) -> str:
    scheduler = random.choice(schedulers())
    generation = random.choice(scheduler["generations"])
    lines = [
        f'name = "by chance"\nseed = {random.randrange(2**32)}',
        f'[run]\nduration = "{random.randint(100, 600)}ms"\nwarmup = "{random.randint(0, 100)}ms"\nreplications = 2',
        f'[host]\nprofile = "{random.choice(["exact", "generic", "lp200r"])}"\npcpus = {random.randint(1, 6)}',
        f'scheduler = "{scheduler["name"]}"\ngeneration = "{generation["name"]}"',
    ]
    if scheduler["name"].startswith("linux-"):
        lines.append('hypervisor = "kvm"')
    lines += _parameters(random, generation, "global")
    has_network = random.random() < 0.5
    if has_network and not scheduler["name"].startswith("linux-"):
        lines.append("[domain.dom0]\ndriver_domain = true")
        lines += _parameters(random, generation, "domain")
    for number in range(random.randint(1, 5)):
        vcpus = random.randint(1, 4)
        lines.append(f"[domain.d{number}]\nvcpus = {vcpus}")
        lines += _parameters(random, generation, "domain")
        apps = [_app(random) for _ in range(random.randint(1, vcpus))]
        if has_network and number == 0:
            nic = "{}" if scheduler["name"].startswith("linux-") else '{ driver_domain = "dom0" }'
            lines.append(f"nic = {nic}")
            apps = ['{ kind = "web-server" }']
        lines.append(f"app = [{', '.join(apps)}]")
    if has_network:
        lines.append(f'[client.c]\nkind = "open-loop"\nserver = "d0"\nrate = {random.randint(10, 900)}')
    return "\n".join(lines) + "\n"


def _app(random: Random) -> str:
    app = random.choice(APPS)
    return app % tuple(random.randint(20, 20_000) for _ in range(app.count("%d")))


def _parameters(random: Random, generation: dict[str, Any], scope: str) -> list[str]:
    lines = []
    for param in generation["params"]:
        if param["scope"] != scope or random.random() < 0.6:
            continue
        if (words := re.fullmatch(r"one of (.*)", param["allowed"])) is not None:
            lines.append(f'{param["name"]} = "{random.choice(words[1].split(", "))}"')
        elif (ends := re.search(r"from (-?\d+) to (\d+)", param["allowed"])) is not None:
            low, high = int(ends[1]), int(ends[2])
            # Small values as often as large ones.
            lines.append(f"{param['name']} = {min(high, low + int((high - low + 1) ** random.random()) - 1)}")
    return lines
