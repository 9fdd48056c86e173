"""Wheels and sdists: what they hold, what they say, and that they are reproducible."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.parent.name for path in ROOT.glob("lighter-*/pyproject.toml"))
EPOCH = 1700000000


@pytest.fixture(params=NAMES)
def built(request: pytest.FixtureRequest, distributions: dict):
    return distributions[request.param]


def _project(name: str) -> dict:
    return tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"]


def _sources(name: str) -> set[str]:
    """Return the files of a distribution's package."""
    source = ROOT / name / "src"
    return {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_distribution_is_built_once(distributions: dict) -> None:
    """A wheel and an sdist of each, all of one version."""
    assert sorted(distributions) == NAMES
    folder = distributions["lighter-core"].wheel.parent
    assert len(list(folder.iterdir())) == 2 * len(NAMES)
    version = _project("lighter-core")["version"]
    for built in distributions.values():
        assert built.wheel.name == f"{built.package}-{version}-py3-none-any.whl"
        assert built.sdist.name == f"{built.package}-{version}.tar.gz"
        assert built.version == version


def test_a_wheel_holds_its_package_and_metadata_only(built) -> None:
    """Every source file, byte for byte; no `.pth`, which would run at each start."""
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
        info = f"{built.package}-{built.version}.dist-info"
        package = {name for name in names if not name.startswith(f"{info}/")}
        assert package == _sources(built.name)
        assert f"{built.package}/py.typed" in package
        for name in package:
            assert archive.read(name) == (ROOT / built.name / "src" / name).read_bytes()
        licence = archive.read(f"{info}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()


def test_an_sdist_holds_what_the_wheel_is_made_of(built) -> None:
    """Sources, licence, README, project file; nothing that lay around beside them."""
    with tarfile.open(built.sdist) as archive:
        names = [Path(*Path(each.name).parts[1:]) for each in archive if each.isfile()]
        top = archive.getnames()[0].split("/")[0]
        information = archive.extractfile(f"{top}/PKG-INFO").read()
    beside = {str(name) for name in names if name.parts[0] != "src"}
    own = {"LICENSE", "README.md", "pyproject.toml"}
    assert beside == own | {"PKG-INFO", ".gitignore"}
    inside = {
        name.relative_to("src").as_posix() for name in names if name.parts[0] == "src"
    }
    assert inside == _sources(built.name)
    with zipfile.ZipFile(built.wheel) as wheel:
        info = f"{built.package}-{built.version}.dist-info"
        assert wheel.read(f"{info}/METADATA") == information


def test_a_second_build_elsewhere_gives_the_same_bytes(
    built, tmp_path: Path, run: Callable[..., str]
) -> None:
    """Also the wheel: the first was made from the sdist, this one from the sources."""
    copy = tmp_path / "elsewhere" / built.name
    junk = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / built.name, copy, copy_function=shutil.copyfile, ignore=junk)
    shutil.copyfile(ROOT / ".gitignore", copy.parent / ".gitignore")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700 if path.is_dir() else 0o600)
    out = tmp_path / "out"
    run(
        *(sys.executable, "-m", "hatchling", "build", "--directory", str(out)),
        cwd=copy,
        SOURCE_DATE_EPOCH=str(EPOCH),
    )
    for first in (built.wheel, built.sdist):
        second = (out / first.name).read_bytes()
        digests = [
            hashlib.sha256(data).hexdigest() for data in (first.read_bytes(), second)
        ]
        assert digests[0] == digests[1], first.name


def test_the_build_takes_its_time_from_the_variable(built) -> None:
    """SOURCE_DATE_EPOCH, and no clock."""
    moment = time.gmtime(EPOCH)[:5]
    with zipfile.ZipFile(built.wheel) as archive:
        assert {each.date_time[:5] for each in archive.infolist()} == {moment}
    with tarfile.open(built.sdist) as archive:
        assert {each.mtime for each in archive} == {EPOCH}
        assert {(each.uid, each.gid, each.uname, each.gname) for each in archive} == {
            (0, 0, "", "")
        }


def test_metadata_says_what_an_index_shows(built) -> None:
    """Licence as an SPDX expression, interpreters, typing, README."""
    metadata = built.metadata
    assert metadata["Metadata-Version"] == "2.4"
    assert metadata["Name"] == built.name
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert (
        metadata.get_payload().strip()
        == (ROOT / built.name / "README.md").read_text().strip()
    )
    assert re.fullmatch(r".{20,150}\.", metadata["Summary"])
    classifiers = metadata.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    assert "Operating System :: OS Independent" in classifiers
    assert not [each for each in classifiers if each.startswith("License ::")]
    python = "Programming Language :: Python :: "
    assert [each.removeprefix(python) for each in classifiers if python in each] == [
        "3 :: Only",
        "3.11",
        "3.12",
        "3.13",
    ]


def test_addresses_are_the_same_everywhere(distributions: dict) -> None:
    """All name one repository; `release.py check` asks for it before a release."""
    found = {
        tuple(each.metadata.get_all("Project-URL", []))
        for each in distributions.values()
    }
    assert len(found) == 1


def test_a_distribution_asks_others_for_its_own_minor_version(built) -> None:
    """From the version on that it is released with."""
    for requirement in built.requirements:
        if requirement.name in NAMES:
            assert str(requirement.specifier) == f"~={built.version}"
            assert requirement.marker is None
        else:
            assert ">=" in str(requirement.specifier), f"{requirement} has no floor"


def test_entry_points_arrive_in_the_wheel(built) -> None:
    """What the project file declares, in the groups that are scanned."""
    assert built.entry_points == _project(built.name).get("entry-points", {})
