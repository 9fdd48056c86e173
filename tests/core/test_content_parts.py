"""Parts of a user's message: bytes, addresses, `data:` URLs."""

from __future__ import annotations

import pickle

import pytest

from lighter_core import FilePart, ImagePart


@pytest.mark.parametrize(
    ("url", "media"),
    [
        ("data:image/png;base64,iVBORw==", ("image/png", b"\x89PNG")),
        ("DATA:image/png;Base64,iVBORw%3D%3D", ("image/png", b"\x89PNG")),
        ("data:text/plain;charset=utf-8,a%20b", ("text/plain;charset=utf-8", b"a b")),
        ("data:,gr%C3%BCn", ("text/plain", "grün".encode())),
        ("data:;base64,", ("text/plain", b"")),
        ("https://host/a.png", None),
        ("dataset/a.png", None),
    ],
)
def test_a_data_url_holds_media_type_and_bytes(url, media):
    """RFC 2397; an address stays one."""
    for part in (ImagePart(url=url), FilePart(url=url)):
        assert part.media() == media
        assert pickle.loads(pickle.dumps(part)) == part
    if media is None:
        assert part.data_url() == url
    else:
        again = FilePart(url=part.data_url())
        assert again.media() == media
        assert ";base64," in again.data_url()


def test_a_media_type_that_is_given_comes_first():
    """The caller knows better than the address."""
    part = FilePart(url="data:text/plain;base64,e30=", media_type="application/json")
    assert part.media() == ("application/json", b"{}")
    assert part.data_url() == "data:application/json;base64,e30="


@pytest.mark.parametrize("kind", [ImagePart, FilePart])
@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("data:image/png;base64,@@@", "base64 is broken"),
        ("data:image/png;base64,iVBORw", "base64 is broken"),
        ("data:image/png;base64,iVBO Rw==", "base64 is broken"),
        ("data:image/png;base64", "comma"),
        ("data:", "comma"),
    ],
)
def test_a_broken_data_url_is_refused_at_once(kind, url, named):
    """No service could read it; the sentence names the field and not the data."""
    with pytest.raises(ValueError, match=rf"{kind.__name__}\.url .*{named}") as caught:
        kind(url=url)
    assert "iVBO" not in str(caught.value)
