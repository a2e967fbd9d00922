"""What goes wrong with a forge."""


class ForgeError(Exception):
    """A forge that could not be told something: one sentence, without the token. Nothing of the fleet depends on it.

    `status`: of the HTTP answer. `is_passing`: whether it may be otherwise in a moment, `wait_s`: when, in seconds, as
    the forge says. `is_unsure`: whether it may have been done all the same, as the answer was lost.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        is_passing: bool = False,
        wait_s: float | None = None,
        is_unsure: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.is_passing, self.wait_s, self.is_unsure = status, is_passing, wait_s, is_unsure
