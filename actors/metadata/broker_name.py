"""A broker's number as the name of a resource."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,10})", re.ASCII)


def broker_id_of(name: str) -> int | None:
    """None when it is no number of 32 bits."""
    found = _NUMBER.fullmatch(name)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -(2**31) <= number < 2**31 else None
