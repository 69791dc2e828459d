"""Recordings of Xen: the twin of each recording, run in the settings of other recordings of the same guests."""

from vcpulab_evidence.validation.xen.agreement import BARS, OWN, WHAT_IF, Agreement, Held, Verdict, quantile
from vcpulab_evidence.validation.xen.kind import Xen

__all__ = ["BARS", "OWN", "WHAT_IF", "Agreement", "Held", "Verdict", "Xen", "quantile"]
