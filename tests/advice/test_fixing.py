"""`vcpulab lint --fix`: fixes are made that help and do no harm, in the user's own file."""

import json
import re
from pathlib import Path

import pytest

from support import Vcpulab
from vcpulab import Effort
from vcpulab.advice.fixes import fix, why_not
from vcpulab.advice.lint.host import Finding
from vcpulab.advice.lint.lint import Advice, lint

PINNED = """\
name = "pinned"  # as found

[run]
duration = "1s"
warmup = "100ms"

[host]
profile = "generic"
pcpus = 4
scheduler = "credit"

[domain.dom0]

[domain.a]
vcpus = 2
affinity = "0"  # since 2019
app = [{ kind = "hog", instance = 2 }]

[domain.b]
vcpus = 2
affinity = "0"
app = [{ kind = "hog", instance = 2 }]
"""


def test_mends_are_made_in_the_file_and_measured_together(tmp_path: Path, command: Vcpulab) -> None:
    file = tmp_path / "pinned.toml"
    file.write_text(PINNED)
    done = command("lint", "pinned.toml", "--fix", "--replications", "3", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "written to pinned.toml" in done.stderr
    answer = json.loads(done.stdout)["files"]["pinned.toml"]
    assert [one["field"] for one in answer["fixed"]] == ["domain.a.affinity", "domain.b.affinity"]
    assert answer["left"] == []
    assert file.read_text() == PINNED.replace('affinity = "0"', 'affinity = "all"')
    gotten = {one["metric"]: one for one in answer["metrics"]}["a.gotten"]
    assert gotten["after"] > 3.5 * gotten["before"]
    again = command("lint", "pinned.toml", "--fix", "--replications", "3")
    assert (again.returncode, again.stdout) == (0, "pinned.toml: 0 fixed, nothing left\n")
    assert "written" not in again.stderr


def test_foreign_parameters_are_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "left-over.toml"
    file.write_text(PINNED.replace('affinity = "0"', "").replace('"credit"', '"null"\ntslice_ms = 5  # of before'))
    fixed = fix(file, replications=2)
    assert [one.path for one in fixed.taken_out] == ["host.tslice_ms"]
    assert "tslice_ms" not in fixed.scenario.text
    assert fixed.scenario.to_dict()["host"]["scheduler"] == "null"


WEIGHT = Finding("domain.web.weight", "waits", {"domain.web.weight": 512}, "waits-behind-equals")


@pytest.mark.parametrize(
    ("advice", "made", "why"),
    [
        (
            Advice(Finding("domain.web.nic", "a link", rule="outside-link"), None, None),
            [],
            "it comes with no setting",
        ),
        (Advice(WEIGHT, None, None), [], "the fix conflicts with other settings"),
        (Advice(WEIGHT, [], None, starves={"batch": "never ran"}), [], "the fix starves batch"),
        (Advice(WEIGHT, [], None, delays=("mail", "shop")), [], "the fix makes mail, shop late"),
        (Advice(WEIGHT, [], None), [], "the fix improves nothing significantly"),
        (
            Advice(WEIGHT, [], None),
            [Advice(Finding("domain.web.weight", "", {"domain.web.weight": 128}, "inverted-weights"), [], None)],
            "the fix sets domain.web.weight, which `inverted-weights` has set to 128 already",
        ),
    ],
)
def test_what_speaks_against_a_mend(advice: Advice, made: list[Advice], why: str) -> None:
    assert why_not(advice, made) == why


def test_no_share_of_the_time_is_more_than_the_whole(tmp_path: Path) -> None:
    """Two vCPUs that wait for two thirds of the time each wait for two thirds of it, not for four."""
    file = tmp_path / "pinned.toml"
    web = 'nic.driver_domain = "dom0"\napp = [{ kind = "web-server", request_cpu = "2ms", workers = 16 }]'
    text = PINNED.replace("[domain.dom0]", "[domain.dom0]\ndriver_domain = true")
    text = text.replace('app = [{ kind = "hog", instance = 2 }]', web, 1)
    file.write_text(text + '\n[client.v]\nkind = "open-loop"\nserver = "a"\nrate = 600\nfile_size = "4KB"\n')
    found = lint(file, effort=Effort(replications=3))[1]
    assert found, "somebody waits"
    shares = [float(share) for one in found for share in re.findall(r"([\d.]+) % of the", one.finding.reason)]
    assert shares
    assert all(share <= 100 for share in shares), shares
