"""What people told the agent, beside the spec of what runs."""

from dataclasses import dataclass
from enum import StrEnum


class Heal(StrEnum):
    """What is done about lanes that are not any more as they were proved: nothing, tell, or repair."""

    OFF = "off"
    REPORT = "report"
    ON = "on"


@dataclass(frozen=True)
class Settings:
    """`heal_times` repairs of a lane within `heal_within_s` seconds, then it is given up.

    Between two repairs of a lane there are `heal_pause_s`, doubled each time up to `pause_cap_s`; so there are between
    two attempts of a commit that failed. `stops`: so many lanes may stop answering by one run; None: any number.
    `protected`: patterns of lanes that stop only while a window that allows it is open.
    """

    heal: Heal = Heal.OFF
    heal_times: int = 3
    heal_within_s: float = 6 * 3600.0
    heal_pause_s: float = 60.0
    pause_cap_s: float = 3600.0
    stops: int | None = None
    allow_empty: bool = False
    protected: tuple[str, ...] = ()


DEFAULTS = Settings()


def pause_s(settings: Settings, failures: int) -> float:
    """How long to leave it alone after so many failures (0: not at all), in seconds: it doubles, up to a cap."""
    if failures <= 0:
        return 0.0
    doublings = min(failures - 1, 32)
    return min(settings.heal_pause_s * 2.0**doublings, settings.pause_cap_s)
