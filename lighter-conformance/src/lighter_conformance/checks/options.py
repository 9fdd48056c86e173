"""How a provider is made: by name, lightly, and with clear refusals."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast
from weakref import WeakKeyDictionary

from lighter_core import ModelError

from .._bench import Bench, need_code
from .._registry import Seen, check, expect
from ..case import Case

__all__: list[str] = []

_SECRET_VARIABLE = re.compile("KEY|TOKEN|AUTH|BASE_URL|CREDENTIAL")


@check("options", "plugin")
async def from_name_finds_it(bench: Bench) -> None:
    """`Model.from_name(NAME, …)` makes a provider through the entry point, with the
    options that it was given.
    """
    provider = bench.keep(bench.case.make())
    options = bench.case.options_by_name()
    if "model_id" in options:
        found = getattr(provider, "model_id", options["model_id"])
        expect(found == options["model_id"], f"the option model_id became {found!r}")


@check("options", "plugin")
async def unknown_option_is_refused(bench: Bench) -> None:
    """An option that there is not raises an error that names it, instead of being
    ignored.
    """
    try:
        bench.keep(bench.case.make(colour_of_sky="blue"))
    except Exception as error:
        if "colour_of_sky" in str(error):
            return
        raise Seen(f"an error that does not name it: {error}") from error
    raise Seen("the option colour_of_sky='blue' was taken")


@check("options", "plugin")
async def import_is_light(bench: Bench) -> None:
    """Loading the plugin and making a provider imports no SDK and no transport: nothing
    outside the standard library but Lighter's own modules. Those come with the first
    request.
    """
    imported = (await _probe(bench.case))["imported"]
    expect(not imported, f"imported: {imported}")


@check("options", "plugin")
async def construction_sends_nothing(bench: Bench) -> None:
    """Loading the plugin and making a provider touches no network."""
    touched = (await _probe(bench.case))["touched"]
    expect(not touched, f"calls of {touched}")


@check("options", "http", "key")
async def missing_key_is_an_auth_error(bench: Bench) -> None:
    """Without a key, construction raises `ModelError` with `auth_error` that says where
    to put one: before any request, not after it.
    """
    with _no_keys():
        error = _refusal(bench, api_key=None)
    need_code("no key", error, "auth_error")
    expect("api_key" in error.message, f"it does not say where: {error.message}")


@check("options", "http", "key")
async def blank_key_is_an_auth_error(bench: Bench) -> None:
    """A blank key is as good as none: `auth_error`."""
    with _no_keys():
        need_code("a blank key", _refusal(bench, api_key="  "), "auth_error")


@check("options", "http", "key")
async def unsendable_key_is_refused(bench: Bench) -> None:
    """A key that cannot stand in a header, such as one with a line end, is refused at
    construction with `invalid_request` or `auth_error`, and is not shown.
    """
    with _no_keys():
        error = _refusal(bench, api_key="sk-broken\nX-Header: 1")
    need_code("a key with a line end", error, "invalid_request", "auth_error")
    expect("sk-broken" not in f"{error!r} {error}", f"the key is shown: {error}")


def _refusal(bench: Bench, **options: object) -> ModelError:
    try:
        made = bench.keep(bench.case.make(**options))
    except ModelError as error:
        return error
    except Exception as error:
        raise Seen(f"{type(error).__name__} instead of ModelError: {error}") from error
    raise Seen(f"it was made: {made!r}")


@contextmanager
def _no_keys() -> Generator[None]:
    hidden = {k: v for k, v in os.environ.items() if _SECRET_VARIABLE.search(k.upper())}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


_reports: WeakKeyDictionary[Case, dict[str, object]] = WeakKeyDictionary()


async def _probe(case: Case) -> dict[str, object]:
    """Return what a fresh interpreter reports; one for both checks of a case."""
    if case not in _reports:
        job = json.dumps({"name": case.plugin, "options": case.options_by_name()})
        command = [sys.executable, "-m", "lighter_conformance._probe"]
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            input=job.encode(),
            capture_output=True,
            timeout=50,
            check=False,
        )
        try:
            _reports[case] = cast("dict[str, object]", json.loads(done.stdout))
        except ValueError as error:
            last = done.stderr.decode(errors="replace")[-500:]
            raise Seen(f"no report of a fresh interpreter: {last}") from error
    found = _reports[case]
    expect(found["error"] is None, f"it cannot be made by name: {found['error']}")
    return found
