"""The damage is made by what it is asked for alone, not by what was asked for before."""

from __future__ import annotations

import json
import random
from copy import deepcopy

from support import damage

BODY = json.dumps({"a": [{"b": "c"}, {"d": {"e": [1, 2]}}], "f": "g"}).encode()


def test_the_same_state_gives_the_same_damage():
    """Whatever was damaged before: changes inside a value do not stay in it."""
    values = deepcopy(damage._VALUES)
    first = [damage.damaged(BODY, random.Random(n)) for n in range(400)]
    assert repr(damage._VALUES) == repr(values)
    again = [damage.damaged(BODY, random.Random(n)) for n in range(400)]
    assert again == first
