"""Listings in the manner of the toolstack."""

import json

from support import ROOT, Vcpulab

FILE = str(ROOT / "scenarios" / "life-cycle.toml")


def rows(command: Vcpulab, *options: str) -> list[list[str]]:
    return [line.split() for line in command("xl", "list", FILE, *options).stdout.splitlines()]


def test_lists_who_is_there(command: Vcpulab) -> None:
    heading, *domains = rows(command, "--at", "5500ms")
    assert heading == ["Name", "ID", "VCPUs", "State", "Time(s)"]
    assert [(name, number, vcpus) for name, number, vcpus, *_ in domains] == [("steady", "1", "1"), ("late", "3", "1")]
    assert all(state == "r-----" for *_, state, _ in domains)
    # A restored domain and a rebooted one have new ids.
    later = [("steady", "1"), ("batch", "4"), ("late", "5")]
    assert [(name, number) for name, number, *_ in rows(command, "--at", "9s")[1:]] == later
    assert [row[0] for row in rows(command, "--at", "10500ms")[1:]] == ["steady", "batch"]


def test_lists_vcpus(command: Vcpulab) -> None:
    _, *vcpus = rows(command, "--at", "5500ms", "--vcpus")
    assert [row[:5] for row in vcpus] == [
        ["steady", "1", "0", vcpus[0][3], "r--"],
        ["steady", "1", "1", "-", "--p"],
        ["late", "3", "0", vcpus[2][3], "r--"],
    ]
    assert {row[3] for row in vcpus} == {"0", "1", "-"}
    listing = json.loads(command("xl", "list", FILE, "--format", "json").stdout)
    assert listing["at_ns"] == 12_000_000_000
    assert [domain["state"] for domain in listing["domains"] if domain["name"] == "batch"] == ["--p---"]


def test_ends_of_domains_show_their_letters(command: Vcpulab) -> None:
    file = str(ROOT / "scenarios" / "shutdown-and-crash.toml")

    def states(at: str) -> dict[str, str]:
        return {
            line.split()[0]: line.split()[3] for line in command("xl", "list", file, "--at", at).stdout.splitlines()[1:]
        }

    at = states("3500ms")
    assert at["old"] == "--p--d"
    assert set(at["tidy"] + at["phoenix"]) <= set("r-"), "asked to shut down, it still runs"
    assert states("4050ms")["phoenix"] == "---sc-"
    assert states("4150ms")["phoenix"] == "--pscd"
    assert states("5500ms")["evidence"] == "---sc-"
    assert "old" not in states("5500ms")
    assert states("6050ms")["tidy"] == "---s--"
    at = states("7s")
    assert at["tidy"] == "--ps-d"
    assert at["phoenix"] in ("r-----", "------"), "it has come again"
    assert at["evidence"] == "---sc-"
    assert list(states("18s")) == ["dom0", "phoenix"]


def test_a_time_that_is_not_in_the_run_is_refused(command: Vcpulab) -> None:
    for at in ("13s", "-1s", "soon"):
        result = command("xl", "list", FILE, f"--at={at}")
        assert result.returncode == 2
        assert f"--at: found `{at}`; allowed: a time span from 0s to 12s" in result.stderr
