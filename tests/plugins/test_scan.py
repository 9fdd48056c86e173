"""The scan of metadata: which copies count, what is reported, which files are read."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.torture import examples

from lighter_core import Model, default_registry
from lighter_core.plugins._metadata import MetadataNote, scan_installed

from .cases import HEAD, MAKES
from .conftest import Lab


def found(dist: str) -> list[tuple[str, str]]:
    """Return name and version of the plugins of a distribution."""
    plugins = scan_installed().plugins
    return [(each.name, each.version) for each in plugins if each.dist == dist]


def notes(lab: Lab) -> list[MetadataNote]:
    """Return the notes about what the lab wrote."""
    return [n for n in scan_installed().notes if n.place.startswith(str(lab.root))]


def provider(lab: Lab, dist: str, *, version: str = "1.0", at: str = "site") -> Path:
    """Install a provider plugin whose module has the version in its name."""
    module = f"m_{version.replace('.', '_')}"
    lab.module(module, "", at=at).write_text(HEAD + MAKES, "utf-8")
    return lab.dist(dist, {"providers": {"acme": module}}, version=version, at=at)


# Which copy counts.


def test_first_copy_on_the_path_counts_and_the_other_is_noted(lab: Lab) -> None:
    """As for imports; a shadowed copy is no fault."""
    provider(lab, "acme", version="1.0", at="late")
    provider(lab, "Acme", version="2.0", at="early")
    assert found("acme") == [("acme", "2.0")]
    [note] = notes(lab)
    assert not note.broken
    assert "late" in note.place
    assert "early" in note.text
    sys.path.reverse()
    assert found("acme") == [("acme", "1.0")]


def test_first_copy_counts_even_when_it_has_no_plugins(lab: Lab) -> None:
    """KF-118: the plugins of an old copy further back do not come to life again."""
    provider(lab, "acme", version="1.0", at="late")
    lab.dist("acme", "[console_scripts]\nx = y:z\n", version="2.0", at="early")
    assert found("acme") == []
    (lab.root / "early" / "acme-2.0.dist-info" / "entry_points.txt").unlink()
    assert found("acme") == []
    (lab.root / "early" / "acme-2.0.dist-info" / "METADATA").unlink()
    assert found("acme") == [("acme", "1.0")]  # what was early is only a husk


@pytest.mark.parametrize("order", [("1.9", "1.10"), ("1.10", "1.9")])
def test_two_versions_in_one_directory_are_broken(
    lab: Lab, order: tuple[str, str]
) -> None:
    """KF-118: stale metadata is reported; the outcome depends on no order."""
    for version in order:
        provider(lab, "acme", version=version)
    assert found("acme") == [("acme", "1.10")]
    [note] = notes(lab)
    assert note.broken
    assert "acme-1.9" in note.place
    assert "reinstall acme" in note.text
    (lab.root / "site" / "acme-1.10.dist-info" / "METADATA").unlink()
    assert found("acme") == [("acme", "1.9")]


def test_what_pip_left_behind_is_no_distribution(lab: Lab) -> None:
    """An interrupted removal renames to `~…`; that copy is dead."""
    info = provider(lab, "acme")
    info.rename(info.with_name("~cme-1.0.dist-info"))
    assert found("acme") == []
    [note] = notes(lab)
    assert (note.broken, "left behind by pip" in note.text) == (False, True)


def test_a_directory_twice_on_the_path_is_one(lab: Lab) -> None:
    """As `lib64`, which is a link to `lib`."""
    provider(lab, "acme")
    link = lab.root / "link"
    link.symlink_to(lab.root / "site", target_is_directory=True)
    sys.path[:0] = [str(link), str(lab.root / "site")]
    assert found("acme") == [("acme", "1.0")]
    assert notes(lab) == []


# Forms of installation.


def test_egg_info_directories_and_eggs(lab: Lab) -> None:
    """`python setup.py develop` and old eggs leave these."""
    info = provider(lab, "acme")
    egg_info = info.with_name("acme.egg-info")
    info.rename(egg_info)
    (egg_info / "METADATA").rename(egg_info / "PKG-INFO")
    (lab.root / "site" / "old-1.0.egg-info").write_text("Name: old\nVersion: 1.0\n")
    egg = lab.place("bcme-3.0-py3.11.egg")
    shutil.copytree(egg_info, egg / "EGG-INFO")
    (egg / "EGG-INFO" / "PKG-INFO").write_text("Name: bcme\nVersion: 3.0\n")
    assert found("acme") == [("acme", "1.0")]
    assert found("bcme") == [("acme", "3.0")]
    assert notes(lab) == []


def test_a_plugin_inside_a_zip_archive(lab: Lab) -> None:
    """Metadata and code are read from the archive."""
    archive = lab.root / "bundle.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_plugin.py", HEAD + MAKES)
        folder = "zipped-4.0.dist-info"
        file.writestr(f"{folder}/METADATA", "Name: zipped\nVersion: 4.0\n")
        file.writestr(
            f"{folder}/entry_points.txt", "[lighter.providers]\nzip = zipped_plugin\n"
        )
    sys.path.insert(0, str(archive))
    lab.rescan()
    assert found("zipped") == [("zip", "4.0")]
    assert Model.from_name("zip").provider.name == "echo"
    del sys.modules["zipped_plugin"]


def test_an_editable_installation(lab: Lab) -> None:
    """Metadata in one directory, code in another that a .pth file names.

    The source directory often has an egg-info of its own, which is no second plugin.
    """
    info = provider(lab, "acme", at="site")
    (lab.root / "site" / "m_1_0.py").unlink()
    source = lab.root / "src"
    source.mkdir()
    (source / "m_1_0.py").write_text(HEAD + MAKES, "utf-8")
    shutil.copytree(info, source / "acme.egg-info")
    (source / "acme.egg-info" / "METADATA").rename(
        source / "acme.egg-info" / "PKG-INFO"
    )
    (lab.root / "site" / "__editable__.acme-1.0.pth").write_text(f"{source}\n")
    site.addsitedir(str(lab.root / "site"))
    lab.rescan()
    assert str(source) in sys.path
    assert Model.from_name("acme").provider.name == "echo"
    assert found("acme") == [("acme", "1.0")]
    [note] = notes(lab)
    assert not note.broken


def test_an_installed_wheel_and_its_removal(lab: Lab) -> None:
    """A real build by a real installer, in a directory of its own."""
    project = lab.root / "project"
    package = project / "src" / "acme_wheel"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (package / "plugin.py").write_text(HEAD + MAKES, "utf-8")
    (project / "pyproject.toml").write_text(
        textwrap.dedent("""
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        [project]
        name = "Acme.Wheel"
        version = "1.2"
        [project.entry-points."lighter.providers"]
        acme-wheel = "acme_wheel.plugin"
        [tool.hatch.build.targets.wheel]
        packages = ["src/acme_wheel"]
        """)
    )
    hatchling = pytest.importorskip("hatchling.build", reason="hatchling is missing")
    target = lab.place("wheels")
    here = Path.cwd()
    os.chdir(project)
    try:
        name = hatchling.build_wheel(str(lab.root))
    finally:
        os.chdir(here)
    with zipfile.ZipFile(lab.root / name) as wheel:
        wheel.extractall(target)
    importlib.invalidate_caches()
    lab.rescan()
    assert found("acme-wheel") == [("acme-wheel", "1.2")]
    assert Model.from_name("acme-wheel").provider.name == "echo"
    for loaded in ("acme_wheel", "acme_wheel.plugin"):
        del sys.modules[loaded]
    shutil.rmtree(target / "acme_wheel")  # the code goes, the metadata stays
    importlib.invalidate_caches()
    lab.rescan()
    with pytest.raises(ImportError, match=r"of acme-wheel 1\.2 cannot be imported"):
        Model.from_name("acme-wheel")


# What cannot be read.


def test_entry_points_that_cannot_be_read_are_noted(lab: Lab) -> None:
    """A directory, a link to itself: reported, and the next distribution is read."""
    provider(lab, "acme")
    for name in ("folder", "loop"):
        path = lab.dist(name, "") / "entry_points.txt"
        path.unlink()
        path.mkdir() if name == "folder" else path.symlink_to(path)
    assert found("acme") == [("acme", "1.0")]
    texts = sorted(note.text for note in notes(lab))
    assert [text.partition(":")[0] for text in texts] == [
        "entry_points.txt cannot be read"
    ] * 2
    assert all(note.broken for note in notes(lab))


def test_bad_utf_8_of_distributions_without_plugins_is_no_concern(lab: Lab) -> None:
    """Nothing of Lighter's can be in there."""
    info = lab.dist("other", "")
    (info / "entry_points.txt").write_bytes(b"[console_scripts]\n\xff = y:z\n")
    assert notes(lab) == []


UNREADABLE = """
import json, os, sys
from lighter_core.plugins._metadata import scan_installed
scan_installed()  # whatever this imports is imported now
sys.path[:] = sys.argv[1:]
if os.geteuid() == 0:
    os.seteuid(65534)  # root may read everything
scan = scan_installed()
print(json.dumps([[e.name for e in scan.plugins], [[n.place, n.text, n.broken] for n in scan.notes]]))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_an_unreadable_directory_is_noted_and_stops_nothing(
    lab: Lab, request: pytest.FixtureRequest
) -> None:
    """In a process without root's rights; what can be read is found."""
    # The process must get this far; pytest's own folders are shared with other runs.
    lab.root = Path(tempfile.mkdtemp(prefix="lighter-"))
    request.addfinalizer(lambda: shutil.rmtree(lab.root))
    lab.root.chmod(0o755)
    if not all(each.stat().st_mode & 1 for each in lab.root.parents):
        pytest.skip("other users cannot enter the folder for temporary files")
    info = provider(lab, "acme", at="open")
    closed = lab.place("closed")
    provider(lab, "bcme", at="open").joinpath("entry_points.txt").chmod(0)
    closed.chmod(0)
    try:
        done = subprocess.run(
            [sys.executable, "-c", UNREADABLE, str(closed), str(info.parent)],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    finally:
        closed.chmod(0o755)
    names, noted = json.loads(done.stdout)
    assert names == ["acme"]
    assert [(place, broken) for place, _, broken in noted] == [
        (str(closed), True),
        (str(info.parent / "bcme-1.0.dist-info"), True),
    ]
    assert "Permission denied" in noted[0][1]


def test_a_finder_of_somebody_else_that_fails_is_noted(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directories have been read by then."""

    class Finder:
        def find_spec(self, *args: object) -> None: ...
        def find_distributions(self, context: object) -> object:
            raise RuntimeError("finder")

    provider(lab, "acme")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert found("acme") == [("acme", "1.0")]
    [note] = [n for n in scan_installed().notes if n.place == "sys.meta_path"]
    assert "RuntimeError: finder" in note.text


def test_odd_entries_of_the_path_are_passed_over(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As imports do; the empty one is the current directory."""
    provider(lab, "acme", at="here")
    monkeypatch.chdir(lab.root / "here")
    odd = [b"bytes", None, "/no/such/place", __file__, Path(), ""]
    monkeypatch.setattr(sys, "path", [*odd, *sys.path[1:]])
    assert found("acme") == [("acme", "1.0")]
    assert notes(lab) == []


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(points=st.binary(max_size=80), metadata=st.binary(max_size=80), data=st.data())
def test_whatever_the_metadata_holds_good_plugins_are_found(
    lab: Lab, points: bytes, metadata: bytes, data: st.DataObject
) -> None:
    """Bytes of any kind give plugins or notes, never an exception."""
    site = lab.place("site")
    if not (site / "acme-1.0.dist-info").exists():
        provider(lab, "acme")
    info = site / "fuzz-1.0.dist-info"
    info.mkdir(exist_ok=True)
    head = data.draw(
        st.sampled_from([b"", b"[lighter.providers]\n", b"[lighter.tools]\nx = "])
    )
    (info / "entry_points.txt").write_bytes(head + points)
    head = data.draw(st.sampled_from([b"", b"Name: fuzz\n", b"Name: fuzz\nVersion: "]))
    (info / "METADATA").write_bytes(head + metadata)
    scan = scan_installed()
    assert ("acme", "1.0") in [(e.name, e.version) for e in scan.plugins]
    for each in scan.plugins:
        if each.dist == "fuzz":
            assert each.name
            assert f"{each.name}{each.version}".isprintable()
    assert all(note.text.isprintable() for note in scan.notes)


def test_notes_reach_the_application(lab: Lab) -> None:
    """`Registry.notes()` has them; a registry without a scan has none."""
    from lighter_core import Registry

    provider(lab, "acme", version="1.0")
    provider(lab, "acme", version="2.0")
    places = [note.place for note in default_registry().notes()]
    assert [place for place in places if "acme-1.0" in place]
    assert Registry(scan=False).notes() == ()


# Which files are read.

COUNT = """
import collections, json, os, sys
from lighter_core.plugins._metadata import scan_installed
scan_installed()  # whatever this imports is imported now
sys.path[:] = sys.argv[1:]
opened = collections.Counter()
def hook(event, args):
    if event == "open" and str(args[0]).startswith(sys.argv[1]):
        opened[os.path.relpath(args[0], sys.argv[1])] += 1
sys.addaudithook(hook)
modules = set(sys.modules)
plugins = scan_installed().plugins
print(json.dumps([len(plugins), opened, sorted(set(sys.modules) - modules)]))
"""


def test_each_file_is_read_once_and_no_other(lab: Lab) -> None:
    """`entry_points.txt` of all; METADATA only of those with plugins; no module."""
    import json

    for number in range(200):
        lab.dist(f"other-{number}", "[console_scripts]\nx = y:z\n")
    for number in range(3):
        name = f"acme-{number}"
        points = {"providers": {name: "boom"}, "tools": {name: "boom"}}
        lab.dist(name, points)
    lab.module("boom", "raise SystemExit('imported')")
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(lab.place("site"))],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    plugins, opened, modules = json.loads(done.stdout)
    assert plugins == 6
    expected = {f"other_{n}-1.0.dist-info/entry_points.txt": 1 for n in range(200)}
    for number in range(3):
        expected[f"acme_{number}-1.0.dist-info/entry_points.txt"] = 1
        expected[f"acme_{number}-1.0.dist-info/METADATA"] = 1
    assert opened == expected
    assert modules == []
