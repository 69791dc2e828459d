"""Workload managers: controllers that set caps or reservations every few seconds from the CPU time that domains used.

The loop is that of Cherkasova, Gupta and Vahdat 2007, section 3: measure the CPU time of each domain in the last
interval, decide its allocation for the next one, and limit the domain to it by the scheduler's parameters.
"""

from vcpulab.advice.managing.controller import Controller, Usage
from vcpulab.advice.managing.controllers import CONTROLLERS, Integral, Predictive, Proportional
from vcpulab.advice.managing.manager import Managed, Settings, manage

__all__ = [
    "CONTROLLERS",
    "Controller",
    "Integral",
    "Managed",
    "Predictive",
    "Proportional",
    "Settings",
    "Usage",
    "manage",
]
