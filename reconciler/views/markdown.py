"""Markdown that a name or a value from outside cannot break."""

SIGNS = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("`", "'"), ("\n", " "), ("\r", " "))


def cell(text: str) -> str:
    """Text that cannot leave its table cell or start markup of its own."""
    for sign, written in SIGNS:
        text = text.replace(sign, written)
    return text
