"""Pasted texts: outputs of several commands, with prompts, quotation marks, or an indentation."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_COMMAND = (
    r"(?P<command>(ssh\s[^\n]{1,200}?\s)?(sudo\s{1,8})?(/\S{1,80}/)?("
    r"(xl|xm)\s+(-\S+\s+)*(list|vcpu-list|info|cpupool-list|sched-\w+|dmesg|debug-keys|top)"
    r"|virsh\s+\S|qm\s+(list|config)|xentop|xenpm|lscpu|uname|numactl|ps\s|cat\s|grep\s|systemd-cgls|date\b|xe\s"
    r"|stat\s+-|mount(\s+-t\s|$)|tail\s+-|sysctl\s+[\w-])[^\n]*)"
)
PROMPT = re.compile(r"[\w.@~:/\\\[\]() +*-]{0,160}[$#%>\u276f\u279c\u00bb\u03bb]\s{0,8}" + _COMMAND)
"""A line of a shell: a prompt, and a command whose output is read here."""
_TYPED = re.compile(
    r"(?P<command>(sudo )?((xl|xm) (list|vcpu-list|info|cpupool-list|sched-\w{1,20}|dmesg)"
    r"|virsh (list|dumpxml|vcpuinfo|vcpupin|emulatorpin|iothreadinfo|schedinfo|nodeinfo|capabilities|domstats)"
    r"|qm (list|config)|lscpu|uname|systemd-cgls|xentop -b|xenpm get-cpufreq-para)( [\w./=-]{1,80}){0,8})"
)
"""A command without a prompt."""
_VIRSH_PROMPT = re.compile(r"virsh [#>] (?P<command>[^\n]*)")
"""The prompt of virsh itself."""
_FENCE = re.compile(r"[`~]{3,20}\w{0,20}")
"""The line before and after a code block in Markdown."""
_NAMED_PROMPT = re.compile(
    r"\[?\w[\w.-]{0,60}@[\w.-]{1,80}[: ][^$#%>\n]{0,120}\]?[$#%>](?P<command>(\s[^\n]*)?)", re.ASCII
)
"""A prompt with a user and a host, and any command, or none."""
_QUOTED = re.compile(r"[ \t]?>[> \t]{0,40}")
_QUOTED_PART = 0.5
"""A mailer has quoted a text where this part of its lines begins with `>`."""


@dataclass(frozen=True)
class Excerpt:
    """The part of a file that one command printed; other lines are empty, so that lines keep their numbers."""

    path: Path
    text: str
    command: str = ""
    """The command typed above the text."""

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def lines(self) -> tuple[int, int]:
        """The numbers of its first line and of its last one."""
        numbers = [number for number, line in enumerate(self.text.splitlines(), 1) if line.strip()]
        return (numbers[0], numbers[-1]) if numbers else (0, 0)

    @property
    def about(self) -> str | None:
        """The machine that the command names: the first word after it that is no option.

        Examples:
            >>> Excerpt(Path("paste.txt"), "", "sudo virsh schedinfo web").about
            'web'
            >>> Excerpt(Path("paste.txt"), "", "virsh -c qemu:///system schedinfo --domain web --live").about
            'web'
            >>> Excerpt(Path("paste.txt"), "", "cat /etc/pve/qemu-server/100.conf").about
            '/etc/pve/qemu-server/100.conf'
            >>> Excerpt(Path("paste.txt"), "", "ssh root@kvm sudo virsh schedinfo web").about
            'web'
            >>> Excerpt(Path("paste.txt"), "", "xl info -n").about
        """
        command = re.sub(r"^ssh\s.{1,200}?\s(?=(sudo|virsh|xl|xm|qm|cat)\s)", "", self.command).removeprefix("sudo ")
        words = re.sub(r"\s+-c\s+\S+", "", command).split()
        if words[:1] == ["cat"] and len(words) == 2:
            return words[1]
        return next((word for word in words[2:] if not word.startswith("-")), None)


def excerpts(
    path: Path,
    text: str,
    begins: Callable[[str], str | None],
    again: frozenset[str],
    headings: Iterable[Sequence[str]],
) -> list[Excerpt]:
    """The parts of a text, each the output of a command; a text without prompts and headings is one.

    Args:
        path: its file.
        text: the text.
        begins: the kind of listing that a line begins; `None`: no listing begins there.
        again: kinds of which a second heading begins another listing.
        headings: the words of headings that a mailer may have wrapped.
    """
    lines = joined(unquoted(text.split("\n")), headings)
    parts: list[tuple[str, int, int]] = []
    command, first, kind = "", 0, None
    for number, line in enumerate(lines):
        if _FENCE.fullmatch(line):
            parts.append((command, first, number))
            command, first, kind = "", number + 1, None
            lines[number] = ""
            continue
        inside_virsh = _VIRSH_PROMPT.fullmatch(line)
        prompt = inside_virsh or PROMPT.fullmatch(line) or _NAMED_PROMPT.fullmatch(line) or _TYPED.fullmatch(line)
        heading = None if prompt else begins(line)
        if prompt is not None or (heading is not None and (heading != kind or heading in again)):
            below_prompt = heading is not None and kind is None and not any(map(str.strip, lines[first:number]))
            if not below_prompt:
                parts.append((command, first, number))
                command, first = "", number
            kind = heading
        if prompt is not None:
            command, first, kind = prompt["command"].strip(), number + 1, None
            command = f"virsh {command}" if inside_virsh else command
            lines[number] = ""
    parts.append((command, first, len(lines)))
    return [
        Excerpt(path, "\n" * begin + "\n".join(lines[begin:end]) + "\n", typed)
        for typed, begin, end in parts
        if any(line.strip() for line in lines[begin:end])
    ]


def unquoted(lines: list[str]) -> list[str]:
    """The lines without the quotation marks of a mailer, and without the indentation that all of them have.

    Examples:
        >>> unquoted(["> host  : a", "> nr_cpus : 4", ""]), unquoted(["  a", "", "   b"])
        (['host  : a', 'nr_cpus : 4', ''], ['a', '', ' b'])
    """
    full = sum(1 for line in lines if line.strip())
    quoted = sum(1 for line in lines if _QUOTED.match(line))
    if quoted and quoted >= _QUOTED_PART * full:
        lines = [_QUOTED.sub("", line, count=1) for line in lines]
    indent = min((len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()), default=0)
    return [line[indent:] if line.strip() else "" for line in lines]


def joined(lines: list[str], headings: Iterable[Sequence[str]]) -> list[str]:
    """The lines; a heading that a mailer wrapped is one line again, and the line below it is empty.

    Examples:
        >>> joined(["Name CPU", "list", "Pool-0 0-3"], [["Name", "CPU", "list"]])
        ['Name CPU list', '', 'Pool-0 0-3']
    """
    whole = {tuple(heading) for heading in headings}
    starts = {heading[:count] for heading in whole for count in range(2, len(heading))} - whole
    longest = max(map(len, whole))
    result = list(lines)
    for number, line in enumerate(lines[:-1]):
        words = _few_words(line, longest)
        if words in starts:
            joined_words = (*words, *_few_words(lines[number + 1], longest))
            if joined_words in whole:
                result[number : number + 2] = [" ".join(joined_words), ""]
    return result


def _few_words(line: str, most: int) -> tuple[str, ...]:
    return tuple(line.split(maxsplit=most))


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not empty, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
