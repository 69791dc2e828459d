"""Hosts on which nothing happens: every monitor, table and adviser has an answer, and no number is NaN or infinite."""

import re
from pathlib import Path

import polars as pl
import pytest

import vcpulab
from random_scenarios import random_scenario
from support import Vcpulab
from vcpulab.hypervisors import monitors

RUN = 'name = "idle"\n[run]\nduration = "20ms"\nsample = "5ms"\nreplications = 2\n'
XEN = '[host]\nscheduler = "credit"\npcpus = 1\n[domain.dom0]\ndriver_domain = true\n[domain.a]\n'
KVM = '[host]\nhypervisor = "kvm"\nscheduler = "linux-eevdf"\npcpus = 1\n[domain.a]\n'
ASLEEP = 'app = [{ kind = "phases", phase = [{ event = [{ sleep = "9s" }] }] }]\n'
SILENT = """\
nic = {%s}
app = [{ kind = "web-server" }]
[client.c]
kind = "open-loop"
server = "a"
rate = 0.001
"""
HOSTS = {
    "idle": RUN + XEN,
    "blocked": RUN + XEN + ASLEEP,
    "not-asked": RUN + XEN + SILENT % ' driver_domain = "dom0" ',
    "idle-kvm": RUN + KVM,
    "blocked-kvm": RUN + KVM + ASLEEP,
    "not-asked-kvm": RUN + KVM + SILENT % "",
}
MONITORS = [
    ["monitor", "xencpu"],
    ["monitor", "xencpu", "--format", "csv"],
    ["monitor", "xenoprof"],
    ["monitor", "xenoprof", "--format", "csv"],
    ["monitor", "xenmon", "--out", "xenmon"],
    ["top", "--batch", "--networks", "--vbds", "--vcpus"],
]
COMMANDS = [
    ["run", "--all", "--io", "--waits"],
    ["run", "--format", "csv"],
    ["run", "--format", "json"],
    *(["run", "--counters", tool] for tool in ("esx", "kvm", "xapi", "hyperv")),
    ["bounds", "--check"],
    ["bounds", "--format", "json"],
    ["lint", "--replications", "2"],
    ["explain", "--replications", "2"],
    ["explain", "--slo", "a.gotten > 1", "--replications", "2"],
    ["whatif", "--set", "host.pcpus=2"],
    ["whatif", "--set", "host.pcpus=2", "--all", "--format", "csv"],
    ["capacity", "--vary", "copies:a", "--highest", "2"],
    ["place", "--replications", "2"],
]
NO_NUMBER = re.compile(r"(?<![\w-])-?(nan|inf(inity)?)(?![\w-])", re.IGNORECASE)


@pytest.mark.parametrize("host", HOSTS)
def test_every_command_has_an_answer(host: str, command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(HOSTS[host])
    for name, *options in [*COMMANDS, *([] if "kvm" in host else MONITORS)]:
        own = options[:1] if name == "monitor" else []
        result = command(name, *own, "host.toml", *options[len(own) :])
        said = f"{name} {options}: {result.stdout}{result.stderr}"
        assert result.returncode in (0, 1, 2), said
        assert "Traceback" not in result.stderr, said
        assert not NO_NUMBER.search(result.stdout), said


def _without_a_value(frame: pl.DataFrame) -> list[str]:
    """The columns in which a number is NaN or infinite."""
    return [
        name
        for name, kind in frame.schema.items()
        if kind.is_float() and not frame.get_column(name).drop_nulls().is_finite().all()
    ]


@pytest.mark.parametrize(
    "text", [*HOSTS.values(), *map(random_scenario, range(10))], ids=[*HOSTS, *map(str, range(10))]
)
def test_every_number_of_every_table_is_finite(text: str) -> None:
    run = vcpulab.run(vcpulab.Scenario.from_toml(text))
    tables = [name for name in dir(run) if name.startswith("df_")]
    assert tables
    for name in tables:
        assert not _without_a_value(getattr(run, name)()), name
    assert not _without_a_value(monitors.xenoprof(run))
    if not run.df_samples().is_empty():
        assert not _without_a_value(monitors.xencpu(run))
