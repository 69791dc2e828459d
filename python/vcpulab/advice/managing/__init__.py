"""Workload managers: controllers that set caps or reservations anew every few seconds, by what domains used.

The loop is that of Cherkasova, Gupta and Vahdat 2007, section 3: measure what each domain used in the last interval,
decide what it should be given in the next, and have the scheduler give no more than that.
"""

from vcpulab.advice.managing.controller import Controller, Seen
from vcpulab.advice.managing.controllers import CONTROLLERS, Integral, Predictive, Proportional
from vcpulab.advice.managing.manager import Managed, Settings, manage

__all__ = [
    "CONTROLLERS",
    "Controller",
    "Integral",
    "Managed",
    "Predictive",
    "Proportional",
    "Seen",
    "Settings",
    "manage",
]
