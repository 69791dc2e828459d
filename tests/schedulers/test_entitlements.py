"""What the parameters of each generation promise is what domains get that want all they can get."""

import pytest

import vcpulab

POINTS = 2.0
"""Percent of a pCPU by which what a domain gets may differ: turns are not cut short at the end of a run."""
RESERVED = "period = 20000000\nslice = {}000000\nextratime = 0"
SLICE = "nat_period = 20000000\nlatency = 20000000\nnat_slice = {}000000\nxtratime = 0"
BUDGET = "period_us = 10000\nbudget_us = {}\nextratime = 0"
FRAME = (
    'major_frame_ns = 10000000\nentries = [{ domain = "a", runtime = "2ms" }, { domain = "b", runtime = "5ms" }, '
    '{ domain = "b", vcpu = 1, runtime = "1ms" }]'
)
KVM = 'hypervisor = "kvm"'

CASES: dict[str, tuple[str, str, str, str, str, list[float]]] = {
    "credit xen3.3.0: a weight of a domain": ("credit", "xen3.3.0", "", "", "", [50, 50]),
    "credit xen4.4.1: a weight of each vCPU": ("credit", "xen4.4.1", "", "", "", [100 / 3, 200 / 3]),
    "credit xen4.17: weight": ("credit", "xen4.17", "", "weight = 1024", "", [200 / 3, 100 / 3]),
    "credit xen4.17: cap": ("credit", "xen4.17", "", "", "cap = 20", [80, 20]),
    "credit2 xen4.17": ("credit2", "xen4.17", "", "weight = 512", "", [50, 50]),
    "credit2 xen4.17: cap": ("credit2", "xen4.17", "", "cap = 10", "", [10, 90]),
    "enhanced": ("enhanced", "xen4.4.1", "", "", "", [100 / 3, 200 / 3]),
    "bvt of ACRN": ("bvt", "acrn3", "", "", "weight = 32", [200 / 3, 100 / 3]),
    "sedf": ("sedf", "xen4.4.1", "", RESERVED.format(6), RESERVED.format(5), [30, 50]),
    "atropos": ("atropos", "xen2.0-intended", "", SLICE.format(6), SLICE.format(5), [30, 50]),
    "rtds": ("rtds", "xen4.17", "pcpus = 2", BUDGET.format(6000), BUDGET.format(4000), [60, 80]),
    "arinc653": ("arinc653", "xen4.17", FRAME, "", "", [20, 60]),
    "linux-eevdf": ("linux-eevdf", "6.12", KVM, "weight = 300", "", [75, 25]),
    "linux-cfs: quota of each vCPU": ("linux-cfs", "6.1", KVM, "", "vcpu_quota_us = 10000", [80, 20]),
}


@pytest.mark.parametrize("case", CASES)
def test_domains_get_what_they_are_entitled_to(case: str) -> None:
    scheduler, generation, host, a, b, promised = CASES[case]
    pcpus = "" if "pcpus" in host else "pcpus = 1"
    scenario = vcpulab.Scenario.from_toml(
        f'run = {{ duration = "6s", warmup = "1s" }}\n[host]\nprofile = "exact"\nscheduler = "{scheduler}"\n'
        f'generation = "{generation}"\n{pcpus}\n{host}\n[domain.a]\n{a}\napp = [{{ kind = "hog" }}]\n'
        f'[domain.b]\nvcpus = 2\n{b}\napp = [{{ kind = "hog", instance = 2 }}]\n'
    )
    run = vcpulab.run(scenario)
    assert [run[f"{name}.entitlement"].mean for name in "ab"] == pytest.approx(promised)
    assert [run[f"{name}.gotten"].mean for name in "ab"] == pytest.approx(promised, abs=POINTS)
