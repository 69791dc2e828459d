"""The causes of late services, a module for each mechanism."""

from vcpulab.advice.lint.causes import (  # noqa: F401 - declare causes
    capacity,
    classes,
    limits,
    outside,
    pinning,
    reservations,
    slices,
    waking,
    weights,
)
from vcpulab.advice.lint.held import cause

_ORDER = (
    "quota-throttles",
    "too-few-vcpus",
    "tasks-fill-vcpus",
    "capacity-exceeded",
    "host-thread-full",
    "outside-disk",
    "outside-link",
    "outside-client",
    "null-overcommitted",
    "cap-throttles",
    "quota-period",
    "slice-quota-throttles",
    "idle-class",
    "reservation-too-small",
    "reservation-period-too-long",
    "host-thread-pinned",
    "isolated-cpus-idle",
    "cpuset-too-small",
    "pinned-together",
    "pool-too-small",
    "ratelimit-too-long",
    "slice-too-long",
    "host-full",
    "slice-outweighed",
    "waits-behind-equals",
    "late-in-its-period",
    "late-wake-ups",
)
"""The names of the causes in the order in which they are checked: limits come before shares."""

CAUSES = tuple(sorted(cause.all, key=lambda rule: _ORDER.index(rule.name)))
"""Every cause, in the order in which they are checked."""
