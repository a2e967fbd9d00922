"""Images of the simulation, and what a node's store makes of them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.core.lock import LockedImage, LockedLayer, LockedPlatform
from reconciler.testing.behaviours import Behaviour, Exits
from reconciler.testing.llamacpp import llamacpp_behaviour

Store = Literal["classic", "containerd"]
Decides = Callable[[ContainerSpec], Behaviour]


ACCEPTS = Exits(after_s=2.0, code=0)
"""A preflight that has nothing against the command line."""

SHARES = (40, 30, 15, 10, 5)
"""Per cent of an image's bytes in each of its layers, from the base upwards."""

UNPACKED = 2
"""A compressed byte of the simulation unpacks to so many."""


@lru_cache(maxsize=8192)
def sha256(text: str) -> str:
    """A digest made of any text."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class SimImage:
    """An image that the simulated registry has, or a local build (`is_local`) that only nodes have.

    `bytes_by_platform`: compressed sizes. `layers`: by platform, made up from `content` where they are not given;
    images of the same content are the same to a node. `behaviour`: what its containers do, fixed or by their spec;
    `preflight`: what those do that only try a command line out.
    """

    reference: str
    digest: str
    bytes_by_platform: tuple[tuple[str, int], ...] = (("linux/amd64", 10**9), ("linux/arm64", 10**9))
    behaviour: Behaviour | Decides = llamacpp_behaviour
    entrypoint: tuple[str, ...] | None = None
    env: tuple[tuple[str, str], ...] = (("PATH", "/usr/local/bin:/usr/bin:/bin"),)
    is_local: bool = False
    layers: tuple[tuple[str, tuple[LockedLayer, ...]], ...] = ()
    content: str = ""
    preflight: Behaviour | Decides = ACCEPTS

    @classmethod
    def named(cls, repository: str, behaviour: Behaviour | Decides = llamacpp_behaviour) -> "SimImage":
        """An image of this repository, with a digest made of the name."""
        digest = sha256(f"manifest {repository}")
        return cls(f"{repository}@{digest}", digest, behaviour=behaviour)

    @property
    def pin(self) -> ImagePin:
        """How a spec pins it."""
        if self.is_local:
            return ImagePin(self.digest, self.digest, "id")
        registry, _, repository = self.reference.rpartition("@")[0].partition("/")
        return ImagePin(self.reference, self.digest, "digest", registry, repository)

    def bytes_for(self, platform: str) -> int | None:
        """Its compressed size for a platform, None when it does not support that."""
        return dict(self.bytes_by_platform).get(platform)

    def behave(self, spec: ContainerSpec) -> Behaviour:
        """What a container of it does."""
        return self.behaviour if isinstance(self.behaviour, Behaviour) else self.behaviour(spec)

    def try_out(self, spec: ContainerSpec) -> Behaviour:
        """What a container of it does that only tries a command line out."""
        return self.preflight if isinstance(self.preflight, Behaviour) else self.preflight(spec)

    def layers_for(self, platform: str) -> tuple[LockedLayer, ...]:
        """Its layers for a platform that it supports, from the base upwards."""
        given = dict(self.layers).get(platform)
        if given is not None:
            return given
        return _layers(self.content or self.digest, platform, self.bytes_for(platform) or 0)

    def config_for(self, platform: str) -> str:
        """The digest of its config for a platform: the classic store's id of it."""
        return self.digest if self.is_local else sha256(f"config {self.content or self.digest} {platform}")

    @property
    def locked(self) -> LockedImage:
        """Its content, as a lock would have it."""
        kind: Literal["digest", "id"] = "id" if self.is_local else "digest"
        platforms = tuple(self._platform(platform) for platform, _ in self.bytes_by_platform)
        return LockedImage(self.reference.partition("@")[0], self.digest, kind, platforms)

    def _platform(self, platform: str) -> LockedPlatform:
        manifest = sha256(f"manifest {self.digest} {platform}")
        return LockedPlatform(platform, manifest, 1000, self.config_for(platform), 0, self.layers_for(platform))

    def rebuilt(self, word: str = "next", layer: int = -1) -> "SimImage":
        """The next build, in the same repository: this one of its layers is another."""
        digest = sha256(f"{self.digest} {word}")
        changed = {platform: list(self.layers_for(platform)) for platform, _ in self.bytes_by_platform}
        for platform, items in changed.items():
            items[layer] = _layer(f"{digest} {layer}", platform, items[layer].size_bytes)
        layers = tuple((platform, tuple(items)) for platform, items in changed.items())
        return replace(self, reference=f"{self._name}@{digest}", digest=digest, layers=layers, content=digest)

    def under(self, repository: str) -> "SimImage":
        """The same content under another name, and so under another digest."""
        digest = sha256(f"{repository} {self.digest}")
        return replace(self, reference=f"{repository}@{digest}", digest=digest, content=self.content or self.digest)

    @property
    def _name(self) -> str:
        return self.reference.partition("@")[0]

    @property
    def keep_tag(self) -> str:
        """The tag that keeps it from being pruned."""
        return f"{self._name}:sha-{self.digest.removeprefix('sha256:')[:12]}"


@lru_cache(maxsize=1024)
def _layers(content: str, platform: str, total: int) -> tuple[LockedLayer, ...]:
    sizes = [total * share // 100 for share in SHARES[1:]]
    names = (f"{content} {number}" for number in range(len(SHARES)))
    return tuple(_layer(name, platform, size) for name, size in zip(names, (total - sum(sizes), *sizes), strict=True))


def _layer(name: str, platform: str, size: int) -> LockedLayer:
    return LockedLayer(sha256(f"layer {name} {platform}"), size, sha256(f"diff {name} {platform}"), UNPACKED * size)
