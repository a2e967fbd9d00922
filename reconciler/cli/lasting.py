"""How long what a person says is to last: `--for 4h`."""

import typer

LONGEST_S = 366 * 86400.0
"""A longer one is a slip of the keyboard."""


def lasting_s(text: str | None, what: str) -> float | None:
    """The seconds of an option `--for` that says how long `what` ("a hold") lasts; None: for good.

    Raises `typer.BadParameter`.
    """
    import specs

    if text is None:
        return None
    try:
        seconds = specs.parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"--for: {error}; write for example 4h or 30m") from None
    if not 0 < seconds <= LONGEST_S:
        raise typer.BadParameter(
            f"--for: {what} lasts longer than nothing and at most a year, or, without it, for good"
        )
    return seconds
