"""Recordings of Xen: the twin of each, run in the settings of others of the same guests, beside what was recorded."""

from vcpulab.validation.xen.judged import BARS, Agreement, Held, Verdict
from vcpulab.validation.xen.kind import Xen

__all__ = ["BARS", "Agreement", "Held", "Verdict", "Xen"]
