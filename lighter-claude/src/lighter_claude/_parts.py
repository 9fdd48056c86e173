"""What users say: text, images and documents as content blocks."""

from __future__ import annotations

from base64 import b64encode

from lighter_core import ContentPart, FilePart, ImagePart, ModelError, TextPart
from lighter_core.adapters import dump_json

from ._target import Target

__all__ = ["part_block", "text_block"]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_ENDINGS = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
_PDF = "application/pdf"
_TEXTS = frozenset({"application/json", "application/xml", "application/yaml"})


def text_block(text: str) -> str:
    """Return the JSON text of a text block."""
    return f'{{"type":"text","text":{dump_json(text)}}}'


def part_block(part: ContentPart, target: Target) -> str | None:
    """Return the JSON text of the block for a part; `None` for blank text.

    Raises:
        ModelError: `invalid_request`, naming the part, for what Claude cannot take.
    """
    match part:
        case TextPart():
            return text_block(part.text) if part.text.strip() else None
        case ImagePart():
            return dump_json({"type": "image", "source": _image(part, target)})
        case FilePart():
            return dump_json(_file(part, target))


def _image(part: ImagePart | FilePart, target: Target) -> dict[str, object]:
    media = part.media()
    kind = _plain_type(media[0] if media else part.media_type or "image/png")
    if kind not in _IMAGES:
        raise _refused(target, part, kind, "JPEG, PNG, GIF and WebP")
    if media is None:
        return {"type": "url", "url": _address(part, target)}
    return {"type": "base64", "media_type": kind, "data": _base64(media[1])}


def _file(part: FilePart, target: Target) -> dict[str, object]:
    title = {"title": part.name} if part.name else {}
    media = part.media()
    kind = _plain_type(media[0] if media else _type_at(part))
    if kind.startswith("image/"):
        return {"type": "image", "source": _image(part, target)}
    if media is None:
        if kind != _PDF:
            known = "an address of a PDF or an image; read the file and pass its data"
            raise _refused(target, part, kind, known)
        source: dict[str, object] = {"type": "url", "url": _address(part, target)}
        return {"type": "document", "source": source, **title}
    if kind == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": _base64(media[1])}
        return {"type": "document", "source": source, **title}
    if not kind.startswith("text/") and kind not in _TEXTS:
        raise _refused(target, part, kind, "PDF, images and text")
    try:
        text = media[1].decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise _refused(target, part, kind, "text in UTF-8") from err
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, **title}


def _type_at(part: FilePart) -> str:
    """Return the media type of a file at an address: given, or an image's by its name.

    A document at an address is a PDF: the interface has no other kind.
    """
    if part.media_type:
        return part.media_type
    path = (part.url or "").partition("?")[0].partition("#")[0]
    return _ENDINGS.get(path.rpartition(".")[2].lower(), _PDF)


def _address(part: ImagePart | FilePart, target: Target) -> str:
    url = part.url or ""
    scheme = url.partition(":")[0].lower()
    if scheme not in {"http", "https"}:
        raise ModelError(
            f"{target.label} fetches a {type(part).__name__} from http and https only,"
            f" got an address that begins with {scheme[:20]!r}; read the file and pass"
            " its data",
            "invalid_request",
            provider=target.name,
        )
    return url


def _plain_type(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _refused(
    target: Target, part: ImagePart | FilePart, media_type: str, known: str
) -> ModelError:
    kind, name = type(part).__name__, getattr(part, "name", None)
    return ModelError(
        f"{target.label} takes no {kind}{f' {name!r}' if name else ''} of type"
        f" {media_type!r}; it takes {known}",
        "invalid_request",
        provider=target.name,
    )
