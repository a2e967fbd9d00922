"""Every check there is, in the order in which findings are told. Ids are stable: they are in specs, plans and scripts.

`docs/checks.md` is generated from here.
"""

from reconciler.core.checks import conflicts, fabric, images, machines, models, nodes
from reconciler.core.checks.check import ALWAYS, BOOT_ONLY, FOR_IMAGES, FOR_MODELS, AnyCheck, Check, NodeCheck, Occasion

STANDING = frozenset({Occasion.STANDING})
NO_OTHER_WAY = "without it there is nothing to boot from"
OTHERS = "what is not of this fleet is never stopped or crowded out"

CHECKS: tuple[Check, ...] = (
    Check(
        "platform",
        "Is the node of the platform that the spec says?",
        "Correct `platform` of the node in the spec.",
        images.platform,
        FOR_IMAGES,
        guards="images are chosen by it",
    ),
    Check(
        "image-missing",
        "Is the image on the node, or does its source have it?",
        "Push the image, pin a digest that the source has, or bring it back from a node: `fleet pin --publish`.",
        images.image_exists,
        FOR_IMAGES,
        guards=NO_OTHER_WAY,
    ),
    Check(
        "image-platform",
        "Is the image made for the platform of the node?",
        "Pin the digest of an image, or of an index, that has this platform.",
        images.image_platform,
        FOR_IMAGES,
        guards=NO_OTHER_WAY,
    ),
    Check(
        "disk",
        "Does the disk hold the bytes of the images that are missing?",
        "Free space below the Docker root: `fleet images gc`.",
        images.disk,
        FOR_IMAGES,
    ),
    Check(
        "memory",
        "Has the node as much memory as the lane declares?",
        "Place the lane on other nodes, or correct `memory` of the lane.",
        machines.memory,
        ALWAYS,
    ),
    Check(
        "gpus",
        "Does the node show as many GPUs as a rank takes?",
        "Make `nvidia-smi` there list them; a lane or node without GPUs says `gpus: 0`.",
        machines.gpus,
        ALWAYS,
    ),
    Check(
        "path",
        "Is what the lane mounts there on the node?",
        "Bring it there, or correct `path` of the model or `mounts` of the lane.",
        machines.paths,
    ),
    Check(
        "model-missing",
        "Is the model on the node?",
        "`fleet models sync`, or look whether its storage is mounted, or correct `path` of the model.",
        models.model_missing,
        FOR_MODELS,
    ),
    Check(
        "model-partial",
        "Are all weight files there that the index of the model names?",
        "`fleet models sync`, or let the download come to its end.",
        models.model_partial,
        FOR_MODELS,
    ),
    Check(
        "model-links",
        "Does every link of the model lead somewhere inside the container?",
        "Make the links relative and within one mounted folder, or mount the folder that they lead to.",
        models.model_links,
    ),
    Check(
        "model-revision",
        "Is the snapshot of the model the pinned one?",
        "Correct `path` or `revision` of the model, or bring the pinned revision.",
        models.model_revision,
    ),
    Check(
        "model-verify",
        "Are the checksums of `verify` right?",
        "Bring the right files, or correct `verify`; `fleet models verify` hashes them all.",
        models.model_verify,
    ),
    Check(
        "model-draft",
        "Is the model that drafts mounted, there, and whole?",
        "Add a mount with its folder to the lane, or `fleet models sync`.",
        models.model_draft,
        FOR_MODELS,
    ),
    Check(
        "model-heads",
        "Can the model be divided as the lane says, by its own config.json?",
        "Correct `parallel` of the lane.",
        models.model_heads,
    ),
    Check(
        "model-disk",
        "Does the disk hold the models that are copied to it?",
        "Free space where the model is to lie.",
        models.model_disk,
        FOR_MODELS,
    ),
    Check(
        "foreign-gpu",
        "Is the GPU free of containers that are not of this fleet?",
        "Stop them yourself, or name them in `may_stop` of the placement.",
        conflicts.foreign_gpu,
        guards=OTHERS,
    ),
    Check(
        "foreign-port",
        "Are the lane's ports free of what is not of this fleet?",
        "Stop it yourself, or give the cluster or lane another port.",
        conflicts.foreign_port,
        guards=OTHERS,
    ),
    Check(
        "name",
        "Is the name free that a container of ours has to get?",
        "Rename or remove the container that is not needed.",
        conflicts.name,
        BOOT_ONLY | {Occasion.PROOF},
        guards="a name says whether a container was proved",
    ),
    Check(
        "gpu-runtime",
        "Can Docker give a container a GPU there?",
        "Install nvidia-container-toolkit, run `nvidia-ctk runtime configure`, restart Docker.",
        machines.gpu_runtime,
        ALWAYS,
    ),
    Check(
        "interface",
        "Is the cluster's interface there, up, with the declared address?",
        "Correct the interface of the node in the spec, plug the cable, or give the interface its address.",
        fabric.interface,
        ALWAYS,
    ),
    Check(
        "hca",
        "Is the RDMA device there, with an active port?",
        "Correct `hca` of the interface in the spec, or look at cable, switch and driver.",
        fabric.hca,
        ALWAYS,
    ),
    Check(
        "gid",
        "Is the GID at the cluster's index there, and of RoCE v2?",
        "Correct `nccl: {gid_index: N}` of the cluster; the evidence names an index that fits.",
        fabric.gid,
        ALWAYS,
    ),
    Check(
        "driver",
        "Do the nodes of the gang have the same GPU driver?",
        "Install the same driver on all nodes of the cluster. It is only told.",
        machines.driver,
        ALWAYS,
    ),
    Check(
        "memory-free",
        "Is the memory that the lane declares free, where no lane of ours has it?",
        "End what holds it; the boot waits for it, and then gives up. It is only told.",
        machines.memory_free,
    ),
    Check(
        "stray-port",
        "Is the lane alone on its ports?",
        "End the process that listens beside it. It is only told.",
        conflicts.stray_port,
        STANDING,
    ),
)
"""Asked of each rank of a gang."""

NODE_CHECKS: tuple[NodeCheck, ...] = (
    NodeCheck(
        "docker-version",
        "Is the Docker Engine of a version that fleet is tested with?",
        "Install a later Docker Engine.",
        nodes.docker_version,
        holds_up_boots=True,
    ),
    NodeCheck(
        "clock",
        "Does the clock agree with the controller's? Beyond 2 s it is told, beyond 60 s no lane boots there.",
        "Start the time service of the node; where every node says so, the controller's own clock is off.",
        nodes.clock,
        holds_up_boots=True,
    ),
    NodeCheck(
        "gpu-count",
        "Does the node show as many GPUs as the spec says?",
        "Correct `gpus` of the node in the spec, or look why the driver does not see them.",
        nodes.gpu_count,
    ),
    NodeCheck(
        "gpu-process",
        "Is the GPU free of processes outside containers?",
        "Find out whose the process is, and have it ended.",
        nodes.gpu_process,
    ),
    NodeCheck(
        "orphan",
        "Do all ranks of a gang run when one does?",
        "`fleet apply` boots the gang again, or stops what no placement wants.",
        nodes.orphan,
    ),
    NodeCheck(
        "reboots",
        "Does the node stay up? Three boots within a day are told.",
        "Look at power, heat and the log of the kernel.",
        nodes.reboots,
    ),
    NodeCheck(
        "disk-low",
        "Is there disk left, 20 GiB at least?",
        "`fleet images gc` shows what of the images nothing uses.",
        nodes.disk_low,
    ),
    NodeCheck(
        "image-store",
        "Is the content of a listed image there?",
        "The next apply brings it; `docker image rm` takes the empty entry away.",
        nodes.image_store,
    ),
    NodeCheck(
        "unused-interface",
        "Are interfaces that the spec declares, and no lane uses now, there and up?",
        "Correct the interface of the node in the spec, or plug the cable. It is only told.",
        fabric.unused_interface,
    ),
)
"""Asked of each node."""

BUILT_IN: tuple[AnyCheck, ...] = (*CHECKS, *NODE_CHECKS)
