"""Validation: predictions of recorded hosts, compared with the recordings.

A *free run* predicts a recording from the demands of its threads and its setting; a *what-if* predicts it from the
demands of another recording of the same threads or guests, made in another setting. Recordings of hosts with any number
of CPUs are predicted from their own demands and from those of another recording of the same setting. Each kind of
recordings is a module, or a package, with a `Kind`.
"""

from vcpulab_evidence.validation.pairs import validate
from vcpulab_evidence.validation.report import Cell, Comparison, Report, Verdict
from vcpulab_evidence.validation.xen import Agreement

__all__ = ["Agreement", "Cell", "Comparison", "Report", "Verdict", "validate"]
