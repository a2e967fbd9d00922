"""Failures of the controller's side of images: registries, the vault, the lock."""

from enum import StrEnum


class SupplyErrorKind(StrEnum):
    """What kind of answer or silence it was."""

    NOT_FOUND = "not-found"  # asked, and it has no such image
    DENIED = "denied"  # it wants a login, or another one
    DAMAGED = "damaged"  # what it sent is not what was asked for
    NO_SPACE = "no-space"  # the controller's disk is full
    NO_ANSWER = "no-answer"  # it cannot be reached, or broke off
    REFUSED = "refused"  # it said no for another reason


class SupplyError(Exception):
    """An image, or a part of it, cannot be had. `message` says what happened, `hint` what a person can do."""

    def __init__(self, kind: SupplyErrorKind, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
