"""The release and the distribution of a kernel, by its name: `uname -a`, `-sr` or `-r`, /proc/version."""

import re
from dataclasses import dataclass

Series = tuple[int, int]
"""A series of releases: `(6, 12)`."""

_NAME = re.compile(r"(?P<major>\d{1,3})\.(?P<minor>\d{1,3})(?:\.(?P<point>\d{1,4}))?(?P<build>[^\s,]*)")
_PACKAGE = re.compile(r"\bDebian (\d{1,3})\.(\d{1,3})\.(\d{1,4})\b")
"""The release in Debian's version of the package: up to Debian 12 `uname -r` has only its series."""
_CANDIDATE = re.compile(r"-rc\d|-next-\d")
_PLAIN = re.compile(r"\+?")
"""The build of a kernel whose name is only the release; `+` is of a tree with changes that have no tag."""
_OTHER_SCHEDULERS = re.compile(r"-(cachyos|liquorix|tkg|bore|bmq|pds|muqss)\b")
"""Builds that often have another scheduler than Linux's own, such as BORE, BMQ or PDS."""


@dataclass(frozen=True)
class Distribution:
    """A distribution, by the names of its kernels."""

    name: str
    pattern: re.Pattern[str]
    """A part of the text that only kernels of this distribution have."""
    backports: bool
    """`True`: its kernels carry changes to the scheduler that later releases made."""
    hz_since: tuple[tuple[Series, int | None], ...] = ()
    """The ticks per second that its kernels are built with, from a series on; `None`: not known."""
    base_only: bool = False
    """`True`: a third number of 0 in the name of a kernel says nothing about the point release."""

    def hz(self, series: Series) -> int | None:
        """The ticks per second that a kernel of a series is built with; `None`: not known."""
        return next((hz for since, hz in reversed(self.hz_since) if since <= series), None)


_ANY: Series = (0, 0)
DISTRIBUTIONS = (
    Distribution("Proxmox VE", re.compile(r"-pve\b"), True, ((_ANY, 250), ((6, 14), None))),
    Distribution("Oracle UEK", re.compile(r"\.el\d+uek\b"), True, ((_ANY, 1000),), base_only=True),
    Distribution("ELRepo", re.compile(r"\.el\d+\.elrepo\b"), False),
    Distribution("RHEL", re.compile(r"\.el\d+(_\d+)?\b"), True, ((_ANY, 1000),), base_only=True),
    Distribution("Fedora", re.compile(r"\.fc\d+\b"), False, ((_ANY, 1000),)),
    Distribution("Amazon Linux", re.compile(r"\.amzn\d+\b"), True),
    Distribution("Ubuntu's builds of kernel.org's", re.compile(r"-0\d{5}(rc\d+)?-(generic|lowlatency)\b"), False),
    Distribution(
        "SLES", re.compile(r"-1[56]\d{4}(\.\d+)*-\w+\b"), True, ((_ANY, 250), ((6, 12), None)), base_only=True
    ),
    Distribution(
        "Ubuntu",
        re.compile(r"#\S+-Ubuntu\b|\d-(generic|lowlatency|aws|azure|gcp|gke|ibm|kvm|oem|oracle|nvidia|realtime)\b"),
        True,
        ((_ANY, 250), ((6, 11), 1000)),
        base_only=True,
    ),
    Distribution(
        "Debian",
        re.compile(r"[+~](deb|bpo)\d+\b|\bDebian \d|\d-(cloud-|rt-)?(amd64|arm64|686(-pae)?|armmp|ppc64el|s390x)\b"),
        False,
        ((_ANY, 250),),
        base_only=True,
    ),
)
"""Distributions whose kernels are known by their names.

RHEL's are those of its rebuilds, too (AlmaLinux, Rocky Linux, CentOS Stream), ELRepo's those of kernel.org for RHEL.
"""


@dataclass(frozen=True)
class KernelRelease:
    """A release of the kernel, as a host names it."""

    name: str
    """As `uname -r` prints it: `6.8.12-4-pve`."""
    series: Series
    point: int | None
    """The number of the stable release; `None`: the name has none."""
    distribution: Distribution | None
    """`None`: a kernel of kernel.org, or a build of somebody else."""
    build: str
    """The part of the name after the numbers."""

    @property
    def text(self) -> str:
        """The release without the build: `6.8.12`, or `6.8` without the number of a stable release."""
        return ".".join(map(str, self.series if self.point is None else (*self.series, self.point)))

    @property
    def doubt(self) -> str | None:
        """Why the kernel may have other rules than its release; `None`: it is not known to differ."""
        if _OTHER_SCHEDULERS.search(self.build):
            return "such builds often have another scheduler than Linux's own (BORE, BMQ, PDS)"
        if _CANDIDATE.search(self.build):
            return "a candidate, whose rules may still have changed before the release"
        if self.distribution is not None:
            return f"{self.origin} carry later changes" if self.distribution.backports else None
        return None if _PLAIN.fullmatch(self.build) else "a build whose own changes are not seen"

    @property
    def origin(self) -> str:
        """The kernels among which it is, in words: `kernels of Debian`."""
        return "such kernels" if self.distribution is None else f"kernels of {self.distribution.name}"

    @property
    def hz(self) -> int | None:
        """The ticks per second that the distribution builds such kernels with; `None`: not known."""
        return None if self.distribution is None else self.distribution.hz(self.series)


def release_of(text: str | None) -> KernelRelease | None:
    """The release that a kernel's name begins with; `None`: it begins with no release.

    Examples:
        >>> release_of("6.8.12-4-pve").text, release_of("6.8.0-45-generic").text
        ('6.8.12', '6.8')
        >>> release_of("6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)").text
        '6.1.76'
        >>> release_of("5.14.0-427.13.1.el9_4.x86_64").distribution.name
        'RHEL'
        >>> release_of("generic")
    """
    match = _NAME.match(text or "")
    if match is None or text is None:
        return None
    series = int(match["major"]), int(match["minor"])
    # /proc/version has the compiler's distribution in parentheses before the number of the build.
    name, number, built = text.partition("#")
    text = f"{match[0]} {number}{built}" if number else name
    distribution = next((entry for entry in DISTRIBUTIONS if entry.pattern.search(text)), None)
    point = None if match["point"] is None else int(match["point"])
    if point == 0 and distribution is not None and distribution.base_only:
        package = _PACKAGE.search(text)
        point = int(package[3]) if package is not None and (int(package[1]), int(package[2])) == series else None
    return KernelRelease(match[0], series, point, distribution, match["build"])
