"""Records a real Xen in QEMU's emulation: `make real-xen`, or `make real-xen REAL_XEN=credit-mixed`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import boot
import command
import machine
from archive import archive
from command import ExperimentError
from experiments import Boot, Experiments, Setting, read_experiments
from image import RELEASES, Image
from packages import Packages

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out/real-xen"
CPU = f"{machine.CPU},-avx,-x2apic"
"""Without AVX, whose registers QEMU 7.2 began to emulate, and without x2APIC, at whose timer QEMU 10 ends with
`Bad icount read`."""


def folder(out: Path, one: Boot, setting: Setting, xen: str) -> Path:
    """Where a recording is put."""
    return out / f"xen{xen}-{one.recording(setting)}"


def is_recorded(one: Boot, out: Path, xen: str) -> bool:
    """Whether all recordings of a boot are there, as it stands now in the table."""
    wanted = {Path(path).name: contents for path, (_, contents) in boot.files(one).items()}
    return all(
        _holds(folder(out, one, setting, xen), wanted | {"experiment.toml": boot.table(one, setting, xen).encode()})
        for setting in one.settings
    )


def _holds(recording: Path, wanted: dict[str, bytes]) -> bool:
    return all((recording / name).exists() and (recording / name).read_bytes() == wanted[name] for name in wanted)


def xen_options(one: Boot) -> str:
    """The hypervisor's command line.

    By default Xen leaves a vCPU without its SSE registers until it uses them, which CR0.TS is to tell. QEMU's XSAVE and
    XRSTOR do not heed it: Linux then keeps one program's registers for another. So Xen is to load them at each switch.
    """
    options = "console=com1 com1=115200,8n1 dom0_mem=1200M dom0_max_vcpus=1 loglvl=warning noreboot=1"
    options += " spec-ctrl=eager-fpu"
    if one.kind.pcpus > 1:
        options += f" maxcpus={one.kind.pcpus}"
    return f"{options} sched={one.scheduler}"


def record(image: Image, one: Boot, out: Path, limit_minutes: int) -> None:
    """Makes the recordings of a boot, each in a folder of its own in `out`."""
    booted = [
        *("-kernel", "xen", "-append", xen_options(one)),
        *("-initrd", "vmlinux console=hvc0 quiet rdinit=/init,initrd"),
    ]
    initrd = image.initrd.read_bytes() + archive(boot.files(one))
    booting: dict[str, Path | bytes] = {"xen": image.xen, "vmlinux": image.kernel, "initrd": initrd}
    xen = image.release.xen
    made = out / f"xen{xen}-{one.name}-{one.seed}.boot"
    machine.run(
        *(image.packages, booted, booting, made),
        seed=one.seed,
        limit_minutes=limit_minutes,
        cpu=CPU,
        cpus=one.kind.pcpus,
    )
    for setting in one.settings:
        _hand_out(one, setting, made, folder(out, one, setting, xen), xen)
    shutil.rmtree(made)


def _hand_out(one: Boot, setting: Setting, made: Path, to: Path, xen: str) -> None:
    """One recording of those that a boot made: what is its own, and what it shares."""
    shutil.rmtree(to, ignore_errors=True)
    (made / setting.name).rename(to)
    for path, (_, contents) in boot.files(one).items():
        (to / Path(path).name).write_bytes(contents)
    for name in ("info.txt", "xen-dmesg.txt", "console.txt"):
        shutil.copyfile(made / name, to / name)
    (to / "experiment.toml").write_text(boot.table(one, setting, xen))


def make(image: Image, one: Boot, out: Path, limit_minutes: int) -> None:
    """Records a boot, unless that was done before."""
    if is_recorded(one, out, image.release.xen):
        print(f"{one.name}, seed {one.seed}: recorded before in {out}", flush=True)
    else:
        record(image, one, out, limit_minutes)


def image(xen: str) -> Image:
    """What a release is booted from, built."""
    release = RELEASES[xen]
    built = Image(release, Packages(OUT / f"image-{xen}", release.packages, release.suite))
    built.build()
    return built


def files(recording: Path) -> list[str]:
    """What `vcpulab` makes a twin of."""
    names = ("trace.bin", "list0.txt", "vcpus.txt", "sched.txt", "info.txt")
    return [*(str(recording / name) for name in names), *map(str, recording.glob("pools.txt"))]


def analyse(recording: Path) -> None:
    """Imports a recording, builds its twin and scores it."""
    made_of = files(recording)
    steps = {
        "import": ["import", "--show", *made_of],
        "twin": ["twin", *made_of, "--force", "--out", str(recording / "host.toml")],
        "score": ["twin", "score", *made_of],
    }
    command.analyse(recording, steps, show="score")


def options(experiments: Experiments) -> argparse.ArgumentParser:
    """What the command line takes: boots by name, or recordings, which are made with all others of their boot."""
    arguments = command.options(__doc__, OUT)
    boots = experiments.boots()
    recordings = {f"{name}-{setting.name}": name for name, made in boots.items() for setting in made[0].settings}

    def name(given: str) -> str:
        if given not in boots and given not in recordings:
            raise argparse.ArgumentTypeError(
                f"no experiment `{given}` in experiments.toml; there are: {', '.join(boots)}, each with its settings,"
                f" as in {next(iter(recordings))}"
            )
        return recordings.get(given, given)

    arguments.set_defaults(seed=None)
    arguments.add_argument("names", nargs="*", type=name, metavar="NAME", help=f"default: {', '.join(boots)}")
    arguments.add_argument("--xen", choices=list(RELEASES), default=next(iter(RELEASES)), help="(default: %(default)s)")
    arguments.add_argument("--no-analysis", action="store_true", help="record only")
    return arguments


def main() -> None:
    """The command line."""
    experiments = read_experiments(HERE / "experiments.toml")
    given = options(experiments).parse_args()
    built = image(given.xen)
    out = given.out.resolve()
    boots = experiments.boots()
    for one in (one for name in dict.fromkeys(given.names or boots) for one in boots[name]):
        if given.seed not in (None, one.seed):
            continue
        if one.kind.pcpus > 1 and not RELEASES[given.xen].turns:
            able = ", ".join(name for name, release in RELEASES.items() if release.turns)
            if given.names:
                raise ExperimentError(f"{one.name} has several pCPUs, which needs --xen {able}")
            print(f"{one.name}: left out, as several pCPUs need --xen {able}", flush=True)
            continue
        make(built, one, out, given.minutes)
        if not given.no_analysis:
            for setting in one.settings:
                analyse(folder(out, one, setting, given.xen))


if __name__ == "__main__":
    command.start(main)
