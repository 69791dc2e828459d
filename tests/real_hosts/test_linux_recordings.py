"""Recordings of Linux kernels: `vcpulab conformance` and `vcpulab validate`."""

import gzip
import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support import Vcpulab
from vcpulab import conformance as bundled
from vcpulab_evidence.validation import validate

Change = Callable[[str], str]


def recording(folder: Path, name: str = "6.1-cfs-weights") -> Path:
    shutil.copytree(bundled.recordings() / name, folder / name)
    return folder / name


def change(file: Path, change: Change) -> None:
    text = file.read_text()
    changed = change(text)
    assert changed != text
    file.write_text(changed)


def change_trace(folder: Path, change: Change) -> None:
    """Changes a trace, and leaves it as plain text."""
    packed = folder / "trace.txt.gz"
    text = gzip.decompress(packed.read_bytes()).decode()
    changed = change(text)
    assert changed != text
    packed.unlink()
    (folder / "trace.txt").write_text(changed)


# ---- conformance ----


def test_every_bundled_recording_differs_by_what_it_says(command: Vcpulab) -> None:
    result = command("conformance", str(bundled.recordings()), "--format", "json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    folders = [folder for folder in bundled.recordings().iterdir() if folder.is_dir()]
    assert (report["passed"], report["failed"], report["skipped"]) == (len(folders), 0, 0)
    for one in report["recordings"]:
        assert one["expected"]
        assert one["differing"] == one["differing_max"]
        assert one["decisions"] == sum(of for of, _ in one["by_kind"].values())
        assert one["differing"] == sum(differing for _, differing in one["by_kind"].values())
        assert (one["first"] is None) == (one["differing"] == 0)


def test_one_that_differs_more_fails_and_names_the_first_difference(command: Vcpulab, tmp_path: Path) -> None:
    folder = recording(tmp_path, "6.1-cfs-yield")
    change(folder / "expected.txt", lambda text: text.replace("differing 3", "differing 2"))
    result = command("conformance", str(tmp_path))
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    assert "first difference: trace.txt, line 88, choice: the kernel runs thread 86 (a/0)" in result.stdout


def test_another_kernels_scheduler_fails_one_that_does_not_say(command: Vcpulab, tmp_path: Path) -> None:
    folder = recording(tmp_path, "6.1-cfs-sleepers")
    (folder / "expected.txt").unlink()
    assert "(one in ten)" in command("conformance", str(folder)).stdout
    shutil.copy(bundled.recordings() / "6.12-eevdf-sleepers" / "tunables.txt", folder)
    result = command("conformance", str(folder))
    assert result.returncode == 1
    assert "linux-eevdf 6.12" in result.stdout


def test_vectors_and_recordings_may_be_in_one_tree(command: Vcpulab, tmp_path: Path) -> None:
    recording(tmp_path)
    source = bundled.bundled() / "null-xen4.22"
    shutil.copytree(source, tmp_path / "null")
    report = json.loads(command("conformance", str(tmp_path), "--format", "json").stdout)
    assert [len(report["folders"]), len(report["recordings"])] == [1, 1]
    assert report["passed"] == 1 + len(list(source.glob("*.json")))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_however_the_trace_is_packed(tmp_path: Path, command: Vcpulab, pack: Callable[[bytes], bytes]) -> None:
    folder = recording(tmp_path)
    trace = gzip.decompress((folder / "trace.txt.gz").read_bytes())
    (folder / "trace.txt.gz").unlink()
    (folder / "trace.txt.xz").write_bytes(pack(trace))
    result = command("conformance", str(folder), "--format", "json")
    assert json.loads(result.stdout)["recordings"][0]["decisions"] == 2058


_BAD: list[tuple[str, Change, str]] = [
    ("experiment.txt", lambda t: t.replace("weight=200", "weight=0"), "experiment.txt, line 2: weight: found `0`"),
    ("experiment.txt", lambda t: t.replace("cg c", "cgroup c"), "experiment.txt, line 3: first word: found `cgroup`"),
    ("threads.txt", lambda t: t.replace("85 a 0", "85 a 7"), "vCPU: found `7`, allowed: a thread of that VM"),
    ("tunables.txt", lambda t: t.replace("latency_ns: ", "latency_ns: -"), "latency_ns: found `-6000000`, allowed"),
    ("expected.txt", lambda _: "differing many\n", "expected.txt, line 1: differing: found `many`, allowed"),
]


@pytest.mark.parametrize(("file", "wrong", "said"), _BAD)
@pytest.mark.parametrize("verb", ["conformance", "validate"])
def test_a_bad_recording_is_refused(
    command: Vcpulab, tmp_path: Path, *, verb: str, file: str, wrong: Change, said: str
) -> None:
    folder = recording(tmp_path)
    change(folder / file, wrong)
    result = command(verb, str(folder))
    assert result.returncode == 2
    assert f"{folder}/" in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize("verb", ["conformance", "validate"])
def test_what_is_missing_or_cut_off_is_named(command: Vcpulab, tmp_path: Path, verb: str) -> None:
    folder = recording(tmp_path)
    (folder / "threads.txt").unlink()
    result = command(verb, str(folder))
    assert (result.returncode, "threads.txt: no such file" in result.stderr) == (2, True)
    shutil.copy(bundled.recordings() / folder.name / "threads.txt", folder)
    packed = folder / "trace.txt.gz"
    packed.write_bytes(packed.read_bytes()[:-100])
    result = command(verb, str(folder))
    assert result.returncode == 2
    assert "damaged or cut off" in result.stderr


def test_a_recording_of_two_cpus_is_not_replayed(command: Vcpulab, tmp_path: Path) -> None:
    """Alone it is refused, among others skipped."""
    folder = recording(tmp_path)
    change_trace(folder, lambda text: text.replace("[000]", "[001]", 1))
    why = "CPU: found `1`, allowed: 0: recordings of one CPU"
    result = command("conformance", str(folder))
    assert result.returncode == 2
    assert why in result.stderr
    recording(tmp_path / "more")
    result = command("conformance", str(tmp_path))
    assert result.returncode == 0, result.stdout
    assert f"{folder}: skipped: trace.txt, line 13: {why}" in result.stdout


# ---- validate ----


def test_free_runs_and_what_ifs_are_within_their_limits(command: Vcpulab, tmp_path: Path) -> None:
    for name in ("6.1-cfs-quota40", "6.12-eevdf-quota40", "6.12-eevdf-weights"):
        recording(tmp_path, name)
    result = command("validate", str(tmp_path), "--format", "json")
    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    pairs = [(one["kind"], Path(one["demands"]).name, Path(one["setting"]).name) for one in report["comparisons"]]
    cfs, eevdf, weights = "6.1-cfs-quota40", "6.12-eevdf-quota40", "6.12-eevdf-weights"
    assert pairs == [
        *(("free run", name, name) for name in (cfs, eevdf, weights)),
        ("what-if", cfs, eevdf),
        ("what-if", eevdf, cfs),
    ]
    for one in report["comparisons"]:
        for cell in one["cells"]:
            assert cell["holds"] or cell["chance"], cell
    limits = {(one["kind"], cell["metric"], cell["limit"]) for one in report["comparisons"] for cell in one["cells"]}
    assert limits == {
        ("free run", "share", "0.5 points"),
        ("free run", "switches", "3 %"),
        ("free run", "switches", "15 %"),
        ("free run", "wait_median", "20 % or 16 µs"),
        ("free run", "wait_p90", "20 % or 16 µs"),
        ("what-if", "share", "1 points"),
        ("what-if", "switches", "6 %"),
        ("what-if", "wait_median", "40 % or 32 µs"),
        ("what-if", "wait_p90", "40 % or 32 µs"),
    }


def test_the_answer_begins_with_the_verdict(command: Vcpulab, tmp_path: Path) -> None:
    result = command("validate", str(recording(tmp_path)))
    first, *_ = result.stdout.splitlines()
    assert first == "free run: passed; within their limits: switches 1 of 1, shares 3 of 3"
    assert "recorded   predicted" in result.stdout


def test_a_prediction_in_a_setting_that_it_was_not_recorded_in_fails(command: Vcpulab, tmp_path: Path) -> None:
    folder = recording(tmp_path)
    change(folder / "experiment.txt", lambda text: text.replace("weight=400", "weight=100"))
    result = command("validate", str(folder))
    assert result.returncode == 1
    assert result.stdout.startswith("free run: failed")
    assert "beyond" in result.stdout


def test_what_ifs_may_be_left_out_and_every_prediction_is_a_row(command: Vcpulab, tmp_path: Path) -> None:
    for name in ("6.1-cfs-weights", "6.12-eevdf-weights"):
        recording(tmp_path, name)
    lines = command("validate", str(tmp_path), "--no-what-if", "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("kind,demands,setting,scheduler,of,metric,unit,recorded,predicted,")
    assert {line.split(",")[0] for line in lines[1:]} == {"free run"}
    assert len(lines) == 1 + 2 * (1 + 3)


def test_where_nothing_was_recorded(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, said in (("empty", "there is no recording here"), ("missing", "no such file or folder")):
        result = command("validate", path)
        assert result.returncode == 2
        assert f"{path}: {said}" in result.stderr


def test_from_python_it_can_be_ended(tmp_path: Path) -> None:
    folder = recording(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        validate([folder], progress=lambda _: False)
    report = validate([folder])
    assert report.to_frame().height == len(report.comparisons[0].cells) == 4
