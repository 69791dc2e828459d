"""What the page says of two runs, line by line, against what `vcpulab.compare` says: no browser is needed for that."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import vcpulab
from random_scenarios import random_scenario
from support import HANG_S
from vcpulab import Effort, Run, Scenario
from vcpulab.advice.compare import compare, in_words
from vcpulab.advice.deciding import looks_of
from vcpulab.advice.starvation import Starving

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
TABLES = ("domains", "vcpus", "pcpus", "apps", "io")
KVM = """
run = { duration = "300ms", warmup = "100ms", replications = 5 }
host = { profile = "generic", pcpus = 4, scheduler = "linux-eevdf", hypervisor = "kvm" }
cgroup."machine.slice".cpus = "0-2"
domain.web = { cgroup = "machine.slice", nic = {}, emulator_affinity = "0", app = [{ kind = "web-server" }] }
domain.disk = { disk = {}, iothreads = 1, affinity = "0", app = [{ kind = "iozone", operation = "random-read" }] }
domain.batch = { count = 4, vcpus = 2, affinity = "0-1", app = [{ kind = "hog", instance = 2 }] }
client.users = { kind = "open-loop", server = "web", rate = 300 }
"""
XEN = """
run = { duration = "400ms", warmup = "100ms", replications = 5 }
host = { profile = "generic", pcpus = 2, scheduler = "credit" }
domain.dom0 = { driver_domain = true }
domain.web = { nic.driver_domain = "dom0", app = [{ kind = "web-server" }] }
domain."a.b" = { app = [{ kind = "periodic", run = "1ms", period = "10ms" }] }
domain.batch = { count = 4, app = [{ kind = "hog" }, { kind = "periodic", run = "1ms", period = "7ms" }] }
client.users = { kind = "open-loop", server = "web", rate = 400 }
client.batch1 = { kind = "open-loop", server = "web", rate = 20 }
"""
RTDS = """
run = { duration = "400ms", replications = 4 }
host = { profile = "exact", pcpus = 2, scheduler = "rtds" }
domain.a = { period_us = 10000, budget_us = 4000, app = [{ kind = "hog" }] }
domain.b = { period_us = 10000, budget_us = 100, vcpus = 2, app = [{ kind = "hog", instance = 2 }] }
pool.rest = { pcpus = "1", scheduler = "credit" }
domain.c = { pool = "rest", app = [{ kind = "hog" }] }
domain.d = { pool = "rest", cap = 5, app = [{ kind = "hog" }] }
"""
HELD_BACK = {"domain.web.emulator_quota_us": 1000, "client.users.rate": 2000}
PERIODIC = [{"kind": "periodic", "run": "1ms", "period": "7ms"}] * 3
PAIRS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "a thread of the host held back": (KVM, {}, HELD_BACK),
    "held back no longer": (KVM, HELD_BACK, {"domain.web.emulator_quota_us": None}),
    "held back as before": (KVM, HELD_BACK, {"seed": 5}),
    "nothing": (XEN, {}, {"seed": 1}),
    "seed": (XEN, {}, {"seed": 2}),
    "weight": (XEN, {}, {"domain.web.weight": 4096}),
    "cap": (XEN, {}, {"domain.batch.cap": 20}),
    "many metrics": (XEN, {"domain.batch.app": PERIODIC}, {"domain.batch.cap": 10}),
    "starved": (XEN, {}, {"domain.batch.weight": 60000, "host.pcpus": 1}),
    "load": (XEN, {}, {"client.users.rate": 900}),
    "less load": (XEN, {}, {"client.users.rate": 40}),
    "one pCPU": (XEN, {}, {"host.pcpus": 1}),
    "pinned": (XEN, {}, {"domain.batch.affinity": "0", "domain.web.affinity": "0"}),
    "another scheduler": (XEN, {}, {"host.scheduler": "credit2"}),
    "never runs": (XEN, {}, {"domain.batch.cap": 1, "domain.web.weight": 1, "domain.batch.weight": 65535}),
    "longer runs": (XEN, {}, {"run.duration": "600ms", "domain.batch.cap": 20}),
    "fewer replications": (XEN, {}, {"run.replications": 3, "domain.batch.cap": 20}),
    "a domain gone": (RTDS, {}, {"domain.d": None}),
    "KVM": (KVM, {}, {"domain.batch.weight": 1000}),
    "KVM quota": (KVM, {}, {"domain.batch.global_quota_us": 2000, "domain.web.vcpu_quota_us": 1000}),
    "KVM thread": (KVM, {}, {"domain.web.emulator_affinity": "3", "domain.disk.weight": 2}),
    "KVM groups": (KVM, {}, {'cgroup."machine.slice".cpus': "3"}),
    "budgets": (RTDS, {}, {"domain.b.budget_us": 4000}),
    "pools": (RTDS, {}, {"domain.c.weight": 65535, "domain.d.cap": 1}),
}
RANDOM = range(40)


def _modules() -> None:
    """Makes the page's modules loadable."""
    if shutil.which("npm") is None:
        if "VCPULAB_REQUIRE_BROWSER" in os.environ:
            pytest.fail("Node and npm are not there: the playground cannot be tested")
        pytest.skip("Node and npm are not there: the playground cannot be tested")
    subprocess.run(["make", "web/node_modules/.package-lock.json"], cwd=ROOT, check=True, timeout=HANG_S)


def _as_page_has_it(run: Run) -> dict[str, Any]:
    """A run as the engine hands it to the page: see crates/wasm/src/answer.rs."""
    frames = {name: getattr(run, f"df_{name}")().drop("name", strict=False) for name in TABLES}
    answers = [
        _answer({name: frame.filter(replication=number) for name, frame in frames.items()})
        for number in range(run.scenario.replications)
    ]
    return {"text": run.scenario.text, "answers": [base64.b64encode(answer).decode() for answer in answers]}


def _answer(tables: Mapping[str, pl.DataFrame]) -> bytes:
    described, values = [], []
    for name, table in tables.items():
        columns: list[dict[str, object]] = []
        for column in table:
            words = column.drop_nulls().unique(maintain_order=True).to_list() if column.dtype == pl.String else None
            numbers = column if words is None else column.replace_strict(words, range(len(words)))
            values.append(np.array([np.nan if one is None else one for one in numbers.to_list()], "<f8").tobytes())
            columns.append({"name": column.name, **({} if words is None else {"words": words})})
        described.append({"name": name, "rows": table.height, "columns": columns})
    head = json.dumps({"tables": described, "not_attributed": None, "untraced": 0, "rejected_actions": 0}).encode()
    return head.ljust(-(-(len(head) + 1) // 8) * 8 - 1) + b"\n" + b"".join(values)


def _on_the_page(pairs: list[tuple[Run, Run]]) -> list[list[str]]:
    # With the module, whose parts were compiled before.
    packages = ("--package", "vcpulab-wasm", "--package", "vcpulab-python")
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--quiet", *packages], cwd=ROOT, check=True, timeout=HANG_S
    )
    tasks = [{"before": _as_page_has_it(before), "after": _as_page_has_it(after)} for before, after in pairs]
    done = subprocess.run(
        ["node", "tests/verdicts.mjs", ROOT / "target/release/vcpulab-wasm"],
        cwd=WEB,
        input=json.dumps(tasks),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=HANG_S,
    )
    lines: list[list[str]] = json.loads(done.stdout)
    return lines


def _by_the_front(before: Run, after: Run) -> list[str]:
    return in_words(compare(before, after, looks=looks_of(Effort())), Starving.between(before, after).lines())


def test_every_line_is_that_of_the_command_line() -> None:
    _modules()
    runs = {}
    for name, (text, changes, more) in PAIRS.items():
        before = Scenario.from_toml(text).change(changes)
        runs[name] = (vcpulab.run(before), vcpulab.run(before.change(more)))
    front = {name: _by_the_front(*pair) for name, pair in runs.items()}
    page = dict(zip(runs, _on_the_page(list(runs.values())), strict=True))
    assert page == front
    # Had no pair a line of a kind, nothing would have been shown of it.
    lines = "\n".join(line for one in front.values() for line in one)
    for words in (
        "\nnewly starved: ",
        "\nstarved as before: ",
        "\nno longer starved: ",
        " regresses: ",
        " improves: ",
        "\nmay regress: ",
        "\nof no consequence: ",
        "\nno significant difference: ",
        "\nundefined: ",
        ".failed",
        " to batch4",
        "others alike",
        " thread ",
        " metrics more",
        "nothing improves or regresses significantly",
    ):
        assert words in f"\n{lines}", words


def test_every_line_is_that_of_the_command_line_for_scenarios_by_chance() -> None:
    _modules()
    pairs = []
    for seed in RANDOM:
        scenario = Scenario.from_toml(random_scenario(seed)).change({"run.replications": 4})
        host = scenario.to_dict()["host"]
        # With a topology, another number of pCPUs is another topology.
        wider = seed % 2 and "topology" not in host
        changes = {"host.pcpus": host["pcpus"] + 1} if wider else {"seed": seed + 1}
        pairs.append((vcpulab.run(scenario), vcpulab.run(scenario.change({**changes, "run.duration": "150ms"}))))
    assert _on_the_page(pairs) == [_by_the_front(*pair) for pair in pairs]


def test_the_answer_of_compare_is_that_of_the_page() -> None:
    """Where `compare` adds no replications, it says what the page says."""
    _modules()
    before = Scenario.from_toml(XEN).change({"run.replications": 10, "run.duration": "1s"})
    found = vcpulab.compare(before, before.change({"domain.batch.cap": 20}))
    if found.added is not None and found.added.lines():
        pytest.fail("replications were added: another pair is needed")
    assert _on_the_page([(found.before, found.after)]) == [found.in_words()]


def test_links() -> None:
    _modules()
    done = subprocess.run(
        ["node", "--test", "tests/share.test.mjs"],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
