"""The mistakes that the mutation run makes: each is made, alone, where it says."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "scripts"
SOURCE = '''
MOST = 3

def limited(value: int) -> bool:
    """Tell."""
    return value <= MOST

class Counter:
    def __init__(self):
        self.value = 0

    @property
    def more(self):
        if self.value and limited(self.value):
            return "yes"
        return "no"
'''

OR = " -> self.value or limited(self.value)"


def _mutants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", SCRIPTS / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # data classes look there
    spec.loader.exec_module(module)
    return module


def _results(module: ModuleType) -> list[object]:
    found: list[object] = []
    for value in (0, 3, 4):
        counter = module.Counter()
        try:
            found.append((counter.value, module.limited(value)))
            counter.value = value
            found.append(counter.more)
        except TypeError as error:
            found.append(str(error))
    return found


def test_each_mutant_makes_one_mistake_that_can_be_noticed() -> None:
    """All of this example change a result; none changes the source."""
    made = list(_mutants().mutants_of(SOURCE, "example", "example.py"))
    assert {each.key for each in made} == {
        "example MOST: 3 -> 4",
        "example limited: return value <= MOST -> return None",
        "example limited: value <= MOST -> value < MOST",
        "example Counter.__init__: 0 -> 1",
        "example Counter.more: self.value and limited(self.value)" + OR,
        "example Counter.more: self.value -> None",
        "example Counter.more: return 'yes' -> return None",
        "example Counter.more: 'yes' -> 'XXyesXX'",
        "example Counter.more: return 'no' -> return None",
        "example Counter.more: 'no' -> 'XXnoXX'",
    }
    seen: list[list[object]] = []
    for mutant in [None, *made]:
        module = ModuleType("example")
        exec(compile(ast.parse(SOURCE), "example.py", "exec"), vars(module))
        if mutant is not None:
            mutant.put_in(module)
        seen.append(_results(module))
    assert all(each != seen[0] for each in seen[1:])
    (mutant,) = (each for each in made if "value < MOST" in each.key)
    assert list(mutant.lines) == [6]
