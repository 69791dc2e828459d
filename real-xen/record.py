"""Records experiments on a real Xen in QEMU's emulation: `make real-xen`, or `make real-xen REAL_XEN=credit-caps`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import command
import machine
from archive import Files, archive, text
from command import ExperimentError
from image import PACKAGES, Image
from packages import Packages

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out/real-xen"
WARM_UP_SECONDS = 1
MARGIN_SECONDS = 5
"""For how long guests work on after the recording, and `xl` may take around it."""

GLOBAL_OPTIONS = {"credit": {"tslice_ms": "-t", "ratelimit_us": "-r"}, "credit2": {"ratelimit_us": "-r"}}
"""What `xl` calls the parameters of each scheduler as a whole."""

GUEST_WORDS = {"work": "wk", "sleep_us": "sl", "address": "adr", "ask": "ask", "reply_bytes": "rep"}
"""What `guest.c` calls them."""


@dataclass(frozen=True)
class Experiment:
    """One table of `experiments.toml`."""

    name: str
    scheduler: str = ""
    guests: tuple[dict[str, Any], ...] = ()
    parameters: dict[str, int] = field(default_factory=dict)
    seconds: int = 4

    def __post_init__(self) -> None:
        where = f"experiments.toml: [{self.name}]"
        if self.scheduler not in GLOBAL_OPTIONS:
            raise ExperimentError(f"{where}: scheduler `{self.scheduler}` is not one of: {', '.join(GLOBAL_OPTIONS)}")
        _check(f"{where}: parameters", self.parameters, GLOBAL_OPTIONS[self.scheduler])
        _check(where, {"seconds": self.seconds}, ["seconds"])
        if not self.guests:
            raise ExperimentError(f"{where}: no guests")
        for guest in self.guests:
            if not str(guest.get("name", "")).isalnum():
                raise ExperimentError(f"{where}: every guest needs a name of letters and digits: {guest}")
            _check(f"{where}: guest `{guest['name']}`", guest, ["name", "weight", "cap", *GUEST_WORDS])

    def files(self) -> Files:
        """What Dom0 reads: a configuration for each guest, and the plan that `dom0-init` follows."""
        texts = {f"{guest['name']}.cfg": self._configuration(guest) for guest in self.guests}
        texts["plan.sh"] = self._plan()
        return {f"experiment/{name}": text(contents) for name, contents in texts.items()}

    @property
    def work_seconds(self) -> int:
        """For how long guests work."""
        return WARM_UP_SECONDS + self.seconds + MARGIN_SECONDS

    def _configuration(self, guest: dict[str, Any]) -> str:
        words = [f"{word}={guest[key]}" for key, word in GUEST_WORDS.items() if key in guest]
        extra = " ".join(["console=hvc0 quiet rdinit=/init", f"nm={guest['name']}", *words, f"sec={self.work_seconds}"])
        lines = [
            f'name="{guest["name"]}"',
            'type="pv"',
            'kernel="/guest/vmlinux"',
            'ramdisk="/guest/initrd"',
            "memory=192",
            "vcpus=1",
            f'extra="{extra}"',
        ]
        if "address" in guest:
            lines.append('vif=["bridge=guests"]')
        return "\n".join(lines) + "\n"

    def _plan(self) -> str:
        tool = f"xl sched-{self.scheduler}"
        orders = [
            f"{tool} -d {guest['name']} -w {guest.get('weight', 256)} -c {guest.get('cap', 0)}"
            for guest in self.guests
            if "weight" in guest or "cap" in guest
        ]
        options = [f"{GLOBAL_OPTIONS[self.scheduler][name]} {value}" for name, value in self.parameters.items()]
        if options:
            orders.append(f"{tool} -s {' '.join(options)}")
        network = "yes" if any("address" in guest for guest in self.guests) else ""
        return (
            f'guests="{" ".join(guest["name"] for guest in self.guests)}"\n'
            f"warm_up_seconds={WARM_UP_SECONDS}\nrecord_seconds={self.seconds}\nwork_seconds={self.work_seconds}\n"
            f"network={network}\n"
            f"set_parameters() {{ {' && '.join(orders) or ':'}; }}\n"
            f"show_parameters() {{ {tool} && {tool} -s; }}\n"
        )


def _check(where: str, given: dict[str, Any], allowed: Iterable[str]) -> None:
    """Known words only, and numbers where numbers belong: what passes goes into a shell script."""
    for key, value in given.items():
        if key not in allowed:
            raise ExperimentError(f"{where}: `{key}` is not one of: {', '.join(allowed)}")
        if key in {"address", "ask"}:
            if not re.fullmatch(r"\d+(\.\d+){3}", str(value)):
                raise ExperimentError(f"{where}: {key} `{value}` is not an IPv4 address")
        elif key != "name" and (not isinstance(value, int) or value < 0):
            raise ExperimentError(f"{where}: {key} `{value}` is not a whole number from 0")


def read_experiments(path: Path) -> dict[str, Experiment]:
    """All experiments of a file, checked."""
    return command.read_tables(path, Experiment)


def is_recorded(experiment: Experiment, folder: Path) -> bool:
    """Whether the folder holds a recording of the experiment as it stands now in the table."""
    kept = {path.name: path.read_bytes() for path in folder.glob("*") if path.suffix in {".sh", ".cfg"}}
    return kept == {Path(path).name: contents for path, (_, contents) in experiment.files().items()}


def record(image: Image, experiment: Experiment, seed: int, to: Path, limit_minutes: int) -> None:
    """Runs an experiment, and leaves what it recorded in folder `to`."""
    xen = "console=com1 com1=115200,8n1 dom0_mem=1200M dom0_max_vcpus=1 loglvl=warning noreboot=1"
    boot = [
        *("-kernel", "xen", "-append", f"{xen} sched={experiment.scheduler}"),
        *("-initrd", "vmlinux console=hvc0 quiet rdinit=/init,initrd"),
    ]
    initrd = image.initrd.read_bytes() + archive(experiment.files())
    files: dict[str, Path | bytes] = {"xen": image.xen, "vmlinux": image.kernel, "initrd": initrd}
    machine.run(image.packages, boot, files, to, seed=seed, limit_minutes=limit_minutes)


def analyse(folder: Path) -> None:
    """Imports a recording, builds its twin and scores it."""
    files = [str(folder / name) for name in ("trace.bin", "list0.txt", "vcpus.txt", "sched.txt", "info.txt")]
    steps = {
        "import": ["import", "--show", *files],
        "twin": ["twin", *files, "--force", "--out", str(folder / "host.toml")],
        "score": ["twin", "score", *files],
    }
    command.analyse(folder, steps, show="score")


def main() -> None:
    """The command line."""
    experiments = read_experiments(HERE / "experiments.toml")
    given = command.options(__doc__, OUT, experiments).parse_args()
    image = Image(Packages(OUT / "image", PACKAGES))
    image.build()
    for name in given.names or experiments:
        folder = command.folder(given, name)
        if is_recorded(experiments[name], folder):
            print(f"{name}: recorded before in {folder}", flush=True)
        else:
            record(image, experiments[name], given.seed, folder, given.minutes)
        analyse(folder)


if __name__ == "__main__":
    command.start(main)
