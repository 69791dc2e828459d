"""Who starves: in one run, and from one run to another."""

import vcpulab
from vcpulab.advice.starving import in_a_line, newly_starved, starved

SHORT = {"run.duration": "1s", "run.warmup": "100ms", "run.replications": 2}


def scenario(text: str) -> vcpulab.Scenario:
    return vcpulab.Scenario.from_toml(text).change(SHORT)


def hogs(scheduler: str, weights: dict[str, int], pcpus: int = 1) -> vcpulab.Scenario:
    tables = "".join(
        f'[domain.{name}]\n{f"weight = {weight}" if weight else ""}\napp = [{{ kind = "hog" }}]\n'
        for name, weight in weights.items()
    )
    return scenario(f'[host]\npcpus = {pcpus}\nscheduler = "{scheduler}"\n[domain.dom0]\n{tables}')


def test_a_domain_without_a_pcpu_under_null_never_ran() -> None:
    run = vcpulab.run(hogs("null", {"a": 0, "b": 0}, pcpus=2))
    assert starved(run) == {"b": "never ran"}
    assert in_a_line(starved(run)) == "starved: b (never ran)"


def test_one_vcpu_of_several_is_named() -> None:
    run = vcpulab.run(
        hogs("null", {"a": 0}, pcpus=2).change({"domain.a.vcpus": 2, "domain.a.app": [{"kind": "hog"}] * 2})
    )
    assert starved(run) == {"a": "vCPU 1 never ran"}


def test_hogs_that_share_a_pcpu_by_weight_do_not_starve() -> None:
    assert starved(vcpulab.run(hogs("credit2", {"small": 16, **{f"big{i}": 512 for i in range(12)}}))) == {}


def test_a_cap_starves_nobody_in_one_run_and_somebody_against_another() -> None:
    now = hogs("credit", {"a": 256, "b": 256}, pcpus=3)
    capped = now.change({"domain.a.cap": 4})
    before, after = vcpulab.run_many([now, capped])
    assert starved(after) == {}
    assert list(newly_starved(before, after)) == ["a"]
    assert newly_starved(after, before) == {}


def test_less_to_do_is_no_starvation() -> None:
    now = vcpulab.Scenario.starter().change(SHORT)
    before, after = vcpulab.run_many([now, now.change({"client.http.rate": 10})])
    assert newly_starved(before, after) == {}
