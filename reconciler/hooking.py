"""The hooks of a spec, as a run calls them."""

from collections.abc import Mapping

import specs
from reconciler.core.desired import EnvValue, SecretRef
from reconciler.core.hooks import Hook, Point


def hooks_of(spec: specs.Spec) -> tuple[Hook, ...]:
    """Every hook, each named after its place in the spec; programs run in the folder of the main file."""
    found = {point: getattr(spec.hooks, point) for point in Point}
    return tuple(
        _hook(item, point, f"{point}[{number}]", str(spec.root.absolute()))
        for point, items in found.items()
        for number, item in enumerate(items)
    )


def _hook(item: specs.Hook, point: Point, name: str, folder: str) -> Hook:
    url = _value(item.http) if item.http is not None else None
    given: Mapping[str, str | specs.Secret] = {**item.env, **item.headers}
    values = tuple((key, _value(value)) for key, value in given.items())
    return Hook(point, name, item.lanes, item.timeout, item.command or (), folder, url, values)


def _value(value: str | specs.Secret) -> EnvValue:
    return SecretRef(value.secret) if isinstance(value, specs.Secret) else value
