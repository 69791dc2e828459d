"""A domain's file, as `xl create` reads it. Syntax and settings are those of xl.cfg(5) of Xen 4."""

import re
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of

Value = int | str | list["Value"]
"""The value of a setting."""


_TEXT_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]{1,16})|(?P<octal>0[0-7]{1,20})|(?P<decimal>0|[1-9]\d{0,18}))", re.ASCII
)


def number_of(value: object) -> int | None:
    """The number that a setting is; also of a text, as xl takes it: decimal, or octal after 0, or hexadecimal after 0x.

    Examples:
        >>> number_of(8), number_of("8"), number_of("0x10"), number_of(" 010 "), number_of("many")
        (8, 8, 16, 8, None)
    """
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    match = _TEXT_NUMBER.fullmatch(value.strip(" \t"))
    if match is None:
        return None
    sign = -1 if match["sign"] == "-" else 1
    if match["hex"]:
        return sign * int(match["hex"], 16)
    return sign * (int(match["octal"], 8) if match["octal"] else int(match["decimal"]))


_DEPTH_MAX = 8
"""Lists in lists."""
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n|\#[^\n]*)|(?P<end>[\n;])|(?P<sign>[=\[\],{}:]|\+=)
    |(?P<number>-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})(?![\w.]))|(?P<word>[A-Za-z_][\w.]*)
    |"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'""",
    re.VERBOSE,
)


def read_cfg(path: str | PathLike[str]) -> dict[str, Value]:
    """A domain's file (xl.cfg): its settings by name.

    Raises:
        RecordingError: it does not follow the grammar.
    """
    return _Cfg(str(path), text_of(path)).settings()


class _Cfg:
    """A reader of the grammar: settings, each `NAME = VALUE`; a value is a number, a string, or a list of values.

    A table such as `{'pf': '0'}`, which xm and Oracle VM have in settings of their own, is the list of its values.
    """

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._tokens = self._scan(text)
        self._at = 0

    def _scan(self, text: str) -> list[tuple[str, str, int]]:
        tokens, at, line = [], 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise wrong(self._path, line, text[at:].split("\n", 1)[0], 'NAME = NUMBER, "STRING" or [LIST]')
            kind = match.lastgroup
            assert kind is not None
            if kind != "space":
                tokens.append((kind, match[kind], line))
            line += match[0].count("\n")
            at = match.end()
        return [*tokens, ("end", "the end of the file", line)]

    def settings(self) -> dict[str, Value]:
        settings: dict[str, Value] = {}
        pieces: dict[str, list[str]] = {}
        while self._at < len(self._tokens):
            if self._take("end"):
                continue
            name = self._want("word", "a setting's name")
            sign = self._want("sign", "`=`", ("=", "+="))
            value = self._value(depth=0)
            before = settings.get(name)
            # Texts and lists grow by `+=`; other values are replaced.
            if sign == "+=" and isinstance(before, list) and isinstance(value, list):
                before.extend(value)
            elif sign == "+=" and isinstance(before, str) and isinstance(value, str):
                pieces.setdefault(name, [before]).append(value)
            else:
                settings[name] = value
                pieces.pop(name, None)
            self._want("end", "the end of the line")
        return settings | {name: "".join(texts) for name, texts in pieces.items()}

    def _value(self, depth: int) -> Value:
        kind, text, line = self._tokens[self._at]
        self._at += 1
        number = number_of(text) if kind == "number" else None
        if number is not None:
            return number
        if kind in ("double", "single"):
            return text
        if (kind, text) not in (("sign", "["), ("sign", "{")) or depth == _DEPTH_MAX:
            allowed = f"a number, a string in quotes, or a list in brackets ({_DEPTH_MAX} deep at most)"
            raise wrong(self._path, line, text, allowed)
        return self._values("}" if text == "{" else "]", depth)

    def _values(self, end: str, depth: int) -> list[Value]:
        """The values of a list, or of a table, up to its end."""
        values: list[Value] = []
        while True:
            self._skip_ends()
            if self._take("sign", end):
                return values
            value = self._value(depth + 1)
            self._skip_ends()
            if end == "}":
                self._want("sign", "`:`", (":",))
                self._skip_ends()
                value = self._value(depth + 1)
                self._skip_ends()
            values.append(value)
            if self._take("sign", end):
                return values
            self._want("sign", f"`,` or `{end}`", (",",))

    def _skip_ends(self) -> None:
        while self._tokens[self._at][0] == "end" and self._at < len(self._tokens) - 1:
            self._at += 1

    def _take(self, kind: str, text: str | None = None) -> bool:
        here = self._tokens[self._at]
        taken = here[0] == kind and text in (None, here[1])
        self._at += taken
        return taken

    def _want(self, kind: str, allowed: str, texts: tuple[str, ...] | None = None) -> str:
        here, text, line = self._tokens[self._at]
        if here != kind or (texts is not None and text not in texts):
            raise wrong(self._path, line, text.replace("\n", "the end of the line"), allowed)
        self._at += 1
        return text
