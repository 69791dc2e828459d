"""Recordings of Xen: the twin of each, run in the settings of others of the same guests, beside what was recorded."""

from vcpulab.validation.xen.judged import BARS, OWN, WHAT_IF, Agreement, Held, Verdict, quantile
from vcpulab.validation.xen.kind import Xen

__all__ = ["BARS", "OWN", "WHAT_IF", "Agreement", "Held", "Verdict", "Xen", "quantile"]
