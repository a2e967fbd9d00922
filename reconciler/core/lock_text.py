"""The text of `fleet.lock`: written so that a diff of it can be read, and read so that nothing wrong gets in.

One line a digest; images by name, platforms by theirs, layers from the base upwards. Sizes are in bytes.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeVar

from reconciler.core.lock import Lock, LockedImage, LockedLayer, LockedPlatform, LockError

SCHEMA = "fleet.lock/1"

HINT = "`fleet pin --all` writes it anew from the spec"

Json = Mapping[str, Any]
T = TypeVar("T")

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_PLATFORM = re.compile(r"[a-z0-9]+/[a-z0-9_]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


def lock_text(lock: Lock) -> str:
    """The one text of a lock, whatever order it was made in."""
    images = sorted(lock.images, key=lambda image: (image.name, image.digest))
    head = f'{{\n  "schema": {json.dumps(SCHEMA)},\n  "images": '
    return f"{head}{_block([_image_text(image) for image in images], '  ')}\n}}\n"


def _image_text(image: LockedImage) -> str:
    top = {"name": image.name, "kind": image.kind, "digest": image.digest, "bytes": image.size_bytes or None}
    platforms = sorted(image.platforms, key=lambda item: item.platform)
    parts = [*_fields(top), f'"platforms": {_block([_platform_text(item) for item in platforms], " " * 6)}']
    return _braced(parts, " " * 4)


def _platform_text(item: LockedPlatform) -> str:
    parts = [f'"platform": {json.dumps(item.platform)}']
    if item.manifest:
        parts.append(f'"manifest": {_line({"digest": item.manifest, "bytes": item.manifest_bytes})}')
    if item.config:
        parts.append(f'"config": {_line({"digest": item.config, "bytes": item.config_bytes})}')
    parts.append(f'"layers": {_block([_layer_text(layer) for layer in item.layers], " " * 10)}')
    return _braced(parts, " " * 8)


def _layer_text(layer: LockedLayer) -> str:
    blob = {"digest": layer.digest, "bytes": layer.size_bytes} if layer.digest else {}
    return _line({**blob, "diff_id": layer.diff_id, "unpacked": layer.unpacked_bytes})


def _fields(values: Json) -> list[str]:
    return [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items() if value not in {None, ""}]


def _line(values: Json) -> str:
    return json.dumps({key: value for key, value in values.items() if value is not None})


def _block(items: Sequence[str], indent: str) -> str:
    """A list with each item on lines of its own, its closing bracket at `indent`."""
    if not items:
        return "[]"
    inside = f",\n{indent}  ".join(items)
    return f"[\n{indent}  {inside}\n{indent}]"


def _braced(parts: Sequence[str], indent: str) -> str:
    inside = f",\n{indent}  ".join(parts)
    return f"{{\n{indent}  {inside}\n{indent}}}"


def parse_lock(text: str) -> Lock:
    """The lock of a text. Raises `LockError` for anything that `lock_text` would not have written."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LockError(f"it is not JSON: {error}", HINT) from None
    top = _object(content, "the lock", {"schema", "images"})
    if top.get("schema") != SCHEMA:
        message = f'its schema is {str(top.get("schema"))[:40]!r}; this version reads "{SCHEMA}"'
        raise LockError(message, "upgrade fleet, or let `fleet pin --all` write it anew from the spec")
    images = _list(top, "images", "the lock", _image)
    _insist_on_one_each([(image.name, image.digest) for image in images], "an image")
    _insist_on_one_each([image.digest for image in images if image.kind == "id"], "a local build")
    return Lock(images)


def _image(content: object, where: str) -> LockedImage:
    found = _object(content, where, {"name", "kind", "digest", "bytes", "platforms"})
    kind: Literal["digest", "id"] = _choice(found.get("kind"), where)
    image = LockedImage(
        name=_name(found.get("name", ""), where),
        digest=_digest(found, where),
        kind=kind,
        platforms=_list(found, "platforms", where, lambda item, place: _platform(item, place, kind)),
        size_bytes=_size(found, "bytes", where) if "bytes" in found else 0,
    )
    if not image.platforms:
        raise _fault(where, "it has no platform")
    _insist_on_one_each([item.platform for item in image.platforms], f"{where}: a platform")
    if image.kind == "digest":
        _check_top(image, where)
    else:
        _check_local(image, where)
    return image


def _check_top(image: LockedImage, where: str) -> None:
    """The top digest is an index of its platforms, or the manifest of its only one."""
    if not image.name:
        raise _fault(where, "it has no name")
    if not image.size_bytes:
        raise _fault(where, "`bytes` is missing")
    top = [item for item in image.platforms if item.manifest == image.digest]
    if top and len(image.platforms) > 1:
        raise _fault(where, "its digest is that of an index and of a platform's manifest at once")
    if top and top[0].manifest_bytes != image.size_bytes:
        raise _fault(where, "the same document has two sizes")


def _check_local(image: LockedImage, where: str) -> None:
    """A local build is known by its id; in the classic store that is the config digest."""
    if image.name:
        raise _fault(where, "a local build has no name")
    if len(image.platforms) > 1 or image.platforms[0].config not in {"", image.digest}:
        raise _fault(where, "a local build has one platform, whose config is its id")


def _platform(content: object, where: str, kind: str) -> LockedPlatform:
    found = _object(content, where, {"platform", "manifest", "config", "layers"})
    name = found.get("platform")
    if not isinstance(name, str) or not _PLATFORM.fullmatch(name):
        raise _fault(where, f"{str(name)[:40]!r} is no platform such as linux/arm64")
    manifest, manifest_bytes = _blob(found, "manifest", where, kind)
    config, config_bytes = _blob(found, "config", where, kind)
    layers = _list(found, "layers", where, lambda item, place: _layer(item, place, kind))
    return LockedPlatform(name, manifest, manifest_bytes, config, config_bytes, layers)


def _blob(found: Json, key: str, where: str, kind: str) -> tuple[str, int]:
    if key not in found and kind == "id":
        return "", 0
    place = f"{where}.{key}"
    blob = _object(found.get(key), place, {"digest", "bytes"})
    return _digest(blob, place), _size(blob, "bytes", place)


def _layer(content: object, where: str, kind: str) -> LockedLayer:
    found = _object(content, where, {"digest", "bytes", "diff_id", "unpacked"})
    unpacked = _size(found, "unpacked", where) if "unpacked" in found else None
    diff_id = _digest(found, where, "diff_id")
    if "digest" not in found and kind == "id":
        return LockedLayer("", 0, diff_id, unpacked)
    return LockedLayer(_digest(found, where), _size(found, "bytes", where), diff_id, unpacked)


def _object(content: object, where: str, keys: set[str]) -> Json:
    if not isinstance(content, dict):
        raise _fault(where, "it is not an object")
    unknown = sorted(content.keys() - keys)
    if unknown:
        raise _fault(where, f"unknown key {unknown[0][:40]!r}")
    return content


def _list(found: Json, key: str, where: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
    items = found.get(key)
    if not isinstance(items, list):
        raise _fault(where, f"`{key}` is not a list")
    return tuple(
        read(item, f"{key}[{index}]" if where == "the lock" else f"{where}.{key}[{index}]")
        for index, item in enumerate(items)
    )


def _digest(found: Json, where: str, key: str = "digest") -> str:
    value = found.get(key)
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise _fault(where, f"`{key}` is not sha256: and 64 digits 0-9a-f")
    return value


def _size(found: Json, key: str, where: str) -> int:
    value = found.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _fault(where, f"`{key}` is not a number of bytes")
    return value


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or "@" in value or _CONTROL.search(value):
        raise _fault(where, "`name` is not the name of an image without its digest")
    return value


def _choice(value: object, where: str) -> Literal["digest", "id"]:
    if value == "digest":
        return "digest"
    if value == "id":
        return "id"
    raise _fault(where, '`kind` is neither "digest" nor "id"')


def _insist_on_one_each(keys: Sequence[Any], what: str) -> None:
    for one, other in pairwise(sorted(keys)):
        if one == other:
            raise LockError(f"{what} stands twice: {one if isinstance(one, str) else '@'.join(one)}", HINT)


def _fault(where: str, what: str) -> LockError:
    return LockError(f"{where}: {what}", HINT)
