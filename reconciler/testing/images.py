"""Images of the simulation, and what a node's store makes of them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.core.observed import LocalImage
from reconciler.testing.behaviours import Behaviour
from reconciler.testing.llamacpp import llamacpp_behaviour

Store = Literal["classic", "containerd"]
Decides = Callable[[ContainerSpec], Behaviour]


def sha256(text: str) -> str:
    """A digest made of any text."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class SimImage:
    """An image that the simulated registry has, or a local build (`is_local`) that only nodes have.

    `bytes_by_platform`: compressed sizes. `behaviour`: what its containers do, fixed or by their spec.
    """

    reference: str
    digest: str
    bytes_by_platform: tuple[tuple[str, int], ...] = (("linux/amd64", 10**9), ("linux/arm64", 10**9))
    behaviour: Behaviour | Decides = llamacpp_behaviour
    entrypoint: tuple[str, ...] | None = None
    env: tuple[tuple[str, str], ...] = (("PATH", "/usr/local/bin:/usr/bin:/bin"),)
    is_local: bool = False

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

    def local(self, store: Store, platform: str, *, usable: bool = True, attached: bool = True) -> LocalImage:
        """What a node's store shows once it has it; not `attached`: it came by save and load, without its digest."""
        if self.is_local:
            return LocalImage(self.digest, (), (), usable)
        by_content = store == "containerd"
        image_id = self.digest if by_content else sha256(f"config {self.digest} {platform}")
        digests = (self.digest,) if attached or by_content else ()
        return LocalImage(image_id, digests, (self._tag,) if attached else (), usable)

    @property
    def _tag(self) -> str:
        """The tag that keeps it from being pruned."""
        return f"{self.reference.partition('@')[0]}:sha-{self.digest.removeprefix('sha256:')[:12]}"
