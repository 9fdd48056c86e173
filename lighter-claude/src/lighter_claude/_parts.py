"""What users say: text, images and documents as content blocks."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote_to_bytes

from lighter_core import ContentPart, FilePart, ImagePart, ModelError, TextPart
from lighter_core.adapters import dump_json

from ._target import Target

__all__ = ["part_block", "text_block"]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"
_TEXTS = frozenset({"application/json", "application/xml", "application/yaml"})


def text_block(text: str) -> str:
    """Return the JSON text of a text block."""
    return dump_json({"type": "text", "text": text})


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
    if part.data is None and not _is_data(part.url):
        return {"type": "url", "url": part.url}
    media_type, data = _bytes(part)
    if media_type not in _IMAGES:
        raise _refused(target, "image", media_type, "JPEG, PNG, GIF and WebP")
    return {"type": "base64", "media_type": media_type, "data": _base64(data)}


def _file(part: FilePart, target: Target) -> dict[str, object]:
    title = {"title": part.name} if part.name else {}
    if part.data is None and not _is_data(part.url):
        return {"type": "document", "source": {"type": "url", "url": part.url}, **title}
    media_type, data = _bytes(part)
    if media_type in _IMAGES:
        return {"type": "image", "source": _image(part, target)}
    if media_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": _base64(data)}
        return {"type": "document", "source": source, **title}
    if not media_type.startswith("text/") and media_type not in _TEXTS:
        raise _refused(target, "file", media_type, "PDF, images and text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise _refused(target, "file", media_type, "text in UTF-8") from err
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, **title}


def _is_data(url: str | None) -> bool:
    return url is not None and url[:5].lower() == "data:"


def _bytes(part: ImagePart | FilePart) -> tuple[str, bytes]:
    """Return media type and bytes; a `data:` address holds both."""
    if part.data is not None:
        return _plain_type(part.media_type or ""), part.data
    head, _, body = (part.url or "")[5:].partition(",")
    media_type = _plain_type(part.media_type or head)
    data = unquote_to_bytes(body)
    if head.lower().rstrip().endswith(";base64"):
        from base64 import b64decode

        data = b64decode(data)
    return media_type, data


def _plain_type(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _refused(target: Target, kind: str, media_type: str, known: str) -> ModelError:
    return ModelError(
        f"{target.label} takes no {kind} of type {media_type!r}; it takes {known}",
        "invalid_request",
        provider=target.name,
    )
