"""The parts of a user message's content, and what all message classes share."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from ._dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ContentPart",
    "FilePart",
    "ImagePart",
    "TextPart",
    "Value",
    "need_constant",
    "need_kind",
    "need_text",
]

_T = TypeVar("_T")


def _restore(cls: type[_T], values: Mapping[str, object]) -> _T:
    return cls(**values)


class Value:
    """Pickles and copies by field name, so that a field added later moves nothing."""

    __slots__ = ("_memo",)  # derived data; never compared, printed or pickled

    def __reduce__(self) -> tuple[object, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return _restore, (type(self), values)


def need_constant(owner: object, name: str, value: object, constant: str) -> None:
    """Refuse another word where a class has one of its own.

    The field is there so that stored documents name their class; a document must not be
    able to claim another one.
    """
    if value != constant:
        raise ValueError(
            f"{type(owner).__name__}.{name} is always {constant!r}, got {value!r}"
        )


def need_kind(owner: object, name: str, value: object, kind: type) -> None:
    """Refuse a value that is neither `None` nor of the kind."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(
            f"{type(owner).__name__}.{name} must be {kind.__name__} or None, got"
            f" {type(value).__name__}"
        )


def need_text(owner: object, name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(
            f"{type(owner).__name__}.{name} must be a str, got {type(value).__name__}"
        )


@dataclass(frozen=True, slots=True)
class TextPart(Value):
    """Text inside a user message that has several parts."""

    text: str
    type: Literal["text"] = field(default="text", kw_only=True)

    def __post_init__(self) -> None:
        need_text(self, "text", self.text)
        need_constant(self, "type", self.type, "text")


class _Media(Value):
    """Bytes or an address, never both."""

    __slots__ = ()

    data: bytes | None
    url: str | None
    media_type: str | None

    def __post_init__(self) -> None:
        name = type(self).__name__
        given: object = self.data
        if given is not None and not isinstance(given, bytes):
            raise TypeError(
                f"{name}.data must be bytes, got {type(given).__name__}; for a file on"
                f" disk write {name}.from_path(…), for an address {name}(url=…)"
            )
        need_kind(self, "url", self.url, str)
        need_kind(self, "media_type", self.media_type, str)
        if (self.data is None) == (self.url is None):
            raise ValueError(f"{name} needs either data or url, and not both")
        if self.data is not None and not self.media_type:
            raise ValueError(f"{name} with data needs its media_type, e.g. 'image/png'")
        if self.url is not None:
            try:
                _split_data_url(self.url)
            except ValueError as error:
                raise ValueError(f"{name}.url is a data: URL {error}") from None

    def data_url(self) -> str:
        """Return the address, or the bytes as a `data:` URL in base64."""
        media = self.media()
        if media is None:
            return str(self.url)
        media_type, data = media
        return f"data:{media_type};base64,{b64encode(data).decode('ascii')}"

    def media(self) -> tuple[str, bytes] | None:
        """Return media type and bytes, also of a `data:` URL; `None` for an address."""
        if self.data is not None:
            return self.media_type or "", self.data
        found = _split_data_url(self.url or "")
        return found and (self.media_type or found[0], found[1])


def _split_data_url(url: str) -> tuple[str, bytes] | None:
    """Return media type and bytes of a `data:` URL; `None` for any other.

    Raises:
        ValueError: When it is none by RFC 2397, or its base64 by RFC 4648.
    """
    if url[:5].lower() != "data:":
        return None
    from urllib.parse import unquote_to_bytes

    head, comma, body = url[5:].partition(",")
    if not comma:
        raise ValueError("without a comma: write data:<media type>;base64,<data>")
    media_type, mark, form = head.rpartition(";")
    data = unquote_to_bytes(body)
    if not mark or form.strip().lower() != "base64":
        return head.strip() or "text/plain", data
    try:
        data = b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(f"whose base64 is broken: {error}") from None
    return media_type.strip() or "text/plain", data


@dataclass(frozen=True, slots=True)
class ImagePart(_Media):
    """An image inside a user message: its bytes with a media type, or its URL.

    Example:
        ```python
        UserMessage([TextPart("What is this?"), ImagePart.from_path("cat.png")])
        ```
    """

    data: bytes | None = None
    url: str | None = None
    media_type: str | None = None
    type: Literal["image"] = field(default="image", kw_only=True)

    def __post_init__(self) -> None:
        _Media.__post_init__(self)
        need_constant(self, "type", self.type, "image")

    @classmethod
    def from_path(cls, path: str | Path, *, media_type: str | None = None) -> ImagePart:
        """Read an image file; the media type follows from its name unless given."""
        data, _ = _read(path)
        return cls(data, None, media_type or _media_type_of(path))


@dataclass(frozen=True, slots=True)
class FilePart(_Media):
    """A document inside a user message: its bytes with a media type, or its URL."""

    data: bytes | None = None
    url: str | None = None
    media_type: str | None = None
    name: str | None = None
    type: Literal["file"] = field(default="file", kw_only=True)

    def __post_init__(self) -> None:
        _Media.__post_init__(self)
        need_kind(self, "name", self.name, str)
        need_constant(self, "type", self.type, "file")

    @classmethod
    def from_path(cls, path: str | Path, *, media_type: str | None = None) -> FilePart:
        """Read a file; the media type follows from its name unless given."""
        data, name = _read(path)
        return cls(data, None, media_type or _media_type_of(path), name)


def _read(path: str | Path) -> tuple[bytes, str]:
    """Return a file's content and name."""
    from pathlib import Path

    return Path(path).read_bytes(), Path(path).name


def _media_type_of(path: str | Path) -> str:
    import mimetypes

    guessed, _ = mimetypes.guess_type(str(path))
    if guessed is None:
        raise ValueError(
            f"cannot tell the media type of {str(path)!r}: pass media_type"
        )
    return guessed


ContentPart: TypeAlias = TextPart | ImagePart | FilePart
