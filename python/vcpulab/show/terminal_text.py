"""Text from outside, such as names in a recording, made safe for a terminal."""

_CONTROLS = {*range(0x20), 0x7F, *range(0x80, 0xA0)} - {ord("\t"), ord("\n")}
_DIRECTIONS = {0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_ESCAPED = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS | _DIRECTIONS}


def plain(text: str) -> str:
    r"""The text with escapes for characters that a terminal would obey: controls, and changes of direction.

    Ends of lines and tabs stay.

    Examples:
        >>> print(plain("a\x1b[2Jb\u202ec"))
        a\x1b[2Jb\u202ec
    """
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPED)
