"""Classes whose methods are made late behave as the standard library's from the start."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest

from lighter_core._dataclass import dataclass


def made() -> Any:
    """Return a new class, none of whose methods was called yet."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        names: list[str] = dataclasses.field(default_factory=list, hash=False)
        y: int = dataclasses.field(default=2, kw_only=True)
        note: str = dataclasses.field(default="", repr=False, compare=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x is negative")

    return Point


def like() -> Any:
    """Return the same class, made by the standard library."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        names: list[str] = dataclasses.field(default_factory=list, hash=False)
        y: int = dataclasses.field(default=2, kw_only=True)
        note: str = dataclasses.field(default="", repr=False, compare=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x is negative")

    return Point


def tried(work: Any, cls: Any) -> Any:
    try:
        return work(cls)
    except Exception as error:
        return type(error), str(error).replace("made.", "like.")


def bare(cls: Any) -> Any:
    """An instance on which no method of the class was called."""
    point = object.__new__(cls)
    for name, value in (("x", 1), ("names", []), ("y", 2), ("note", "n")):
        object.__setattr__(point, name, value)
    return point


WORK = {
    "make": lambda cls: dataclasses.astuple(cls(1, ["a"], y=3)),
    "make wrongly": lambda cls: cls(),
    "make with too much": lambda cls: cls(1, [], 3, 4, 5),
    "post_init": lambda cls: cls(-1),
    "signature": lambda cls: str(inspect.signature(cls)),
    "signature of an instance's class": lambda cls: str(
        inspect.signature(type(bare(cls)))
    ),
    "repr": lambda cls: repr(bare(cls)).replace("made.", "like."),
    "equal": lambda cls: bare(cls) == bare(cls),
    "other": lambda cls: bare(cls) == 1,
    "hash": lambda cls: hash(bare(cls)),
    "replace": lambda cls: dataclasses.replace(bare(cls), x=5).x,
    "replace wrongly": lambda cls: dataclasses.replace(bare(cls), z=5),
    "fields": lambda cls: [each.name for each in dataclasses.fields(cls)],
    "match_args": lambda cls: cls.__match_args__,
    "set": lambda cls: setattr(bare(cls), "x", 1),
    "delete": lambda cls: delattr(bare(cls), "x"),
    "no dict": lambda cls: hasattr(bare(cls), "__dict__"),
    "copy": lambda cls: dataclasses.astuple(copy.copy(bare(cls))),
    "deepcopy": lambda cls: dataclasses.astuple(copy.deepcopy(bare(cls))),
    "doc": lambda cls: cls.__doc__,
    "init's name": lambda cls: (cls(1), cls.__init__.__qualname__)[1].replace(
        "made.", "like."
    ),
    "params": lambda cls: (
        cls.__dataclass_params__.frozen,
        cls.__dataclass_params__.eq,
        cls.__dataclass_params__.init,
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_first_use_is_as_the_standard_librarys(name):
    """Each is the very first thing that is done with the class, and then done again."""
    late, early = made(), like()
    for _ in range(2):
        found = tried(WORK[name], late)
        assert found == tried(WORK[name], early)


def test_a_name_that_is_no_field_is_refused_too():
    """With slots the standard library fails at it with a TypeError about super()."""
    with pytest.raises(dataclasses.FrozenInstanceError, match="'z'"):
        bare(made()).z = 1


def test_subclasses():
    cls = made()

    class Plain(cls):
        pass

    plain = Plain(1)
    plain.more = 2  # it has a dict, and this is none of the fields
    assert (plain.more, plain.x) == (2, 1)
    del plain.more
    assert not hasattr(plain, "more")
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del plain.x

    @dataclasses.dataclass(frozen=True)
    class Deeper(made()):  # of which no method was called
        z: int = 4

    assert list(inspect.signature(Deeper).parameters) == [
        "x",
        "names",
        "note",
        "z",
        "y",
    ]
    assert Deeper(1, [], "n", 5, y=3).z == 5
    with pytest.raises(TypeError, match="cannot inherit"):

        @dataclasses.dataclass
        class Thawed(made()):
            pass


def test_signature_stays_for_who_asks_twice():
    """Libraries look whether it is there, and then take it."""
    cls = made()
    for _ in range(2):
        assert isinstance(cls.__signature__, inspect.Signature)
        assert cls.__signature__ == inspect.signature(cls)


def test_threads_make_the_first_instances_together():
    for _ in range(50):
        cls, start, found = made(), threading.Barrier(4), []

        def work(cls=cls, start=start, found=found):
            start.wait(5)
            found.append(repr(cls(1)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(10)
        assert len(found) == 4
        assert len(set(found)) == 1


def test_an_event_is_unpickled_where_none_was_made_yet():
    """Its class is complete enough in a process that only loads it."""
    import lighter_core

    data = pickle.dumps(lighter_core.ToolCallDelta("c", "t", "{}"))
    code = f"import pickle; print(pickle.loads({data!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "ToolCallDelta(call_id='c', tool_name='t', arguments='{}',"
        " type='tool_call_delta')\n"
    )
