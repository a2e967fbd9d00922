"""The GPU and its driver, the disk, rights and limits of the machine, and signals.

Wordings after the CUDA runtime's error strings, the NVIDIA container toolkit, and the C library.
"""

from reconciler.core.causes.signature import Signature

GPU = (
    Signature(
        id="driver-too-old",
        title="the GPU driver is too old for the image",
        explanation="The image's CUDA needs a newer driver than the node has.",
        mend="Update the driver of the node, or use an image of an earlier CUDA.",
        patterns=(
            r"driver version is insufficient for CUDA runtime",
            r"NVIDIA driver on your system is too old",
            r"forward compatibility was attempted on non supported HW",
            r"unsatisfied condition: cuda ?>=",
        ),
    ),
    Signature(
        id="no-gpu",
        title="it sees no GPU",
        explanation="The container was started without one, the driver does not answer, or the NVIDIA container "
        "toolkit is missing.",
        mend="`nvidia-smi` on the node must list the GPU, and Docker needs the NVIDIA runtime or CDI.",
        patterns=(
            r"No CUDA GPUs are available",
            r"no CUDA-capable device is detected",
            r"Found no NVIDIA driver",
            r"libcuda\.so\.1: cannot open shared object",
            r"could not select device driver .*capabilities: \[\[gpu\]\]",
            r"Failed to infer device type",
            r"nvidia-container-cli: (initialization|device) error",
            r"no NVIDIA GPU .*detected",
        ),
    ),
    Signature(
        id="too-few-gpus",
        title="it wants more GPUs than it sees",
        explanation="The parallel sizes of the lane exceed the GPUs of the node or of the container.",
        mend="Lower `parallel`, add nodes, or give the container all GPUs.",
        patterns=(
            r"invalid device ordinal",
            r"World size \(\d+\) is larger than the number of available GPUs",
            r"larger than the number of available GPUs",
        ),
    ),
    Signature(
        id="gpu-architecture",
        title="the image has no code for this GPU",
        explanation="Its kernels were compiled for other GPU generations than this node's.",
        mend="Use an image built for this compute capability (GB10 is sm_121).",
        patterns=(
            r"no kernel image is available",
            r"device kernel image is invalid",
            r"not compatible with the current PyTorch installation",
            r"is not defined for option 'gpu-name'",
            r"Bfloat16 is only supported on GPUs with compute capability",
        ),
    ),
    Signature(
        id="gpu-lost",
        title="the GPU fell away",
        explanation="The driver lost the device, or it reports an uncorrectable memory error.",
        mend="`dmesg | grep -i xid` and `nvidia-smi -q` on the node; it usually needs a reboot.",
        patterns=(
            r"fallen off the bus",
            r"Unable to determine the device handle for GPU",
            r"uncorrectable ECC error",
            r"\bXid\b.*\d",
            r"CUDA error: (device not ready|the launch timed out)",
        ),
    ),
    Signature(
        id="cuda-fault",
        title="a GPU kernel crashed",
        explanation="A kernel read outside its memory or failed an assertion: a fault of the engine, or a setting it "
        "cannot handle.",
        mend="Try it with enforce-eager or another attention backend; with CUDA_LAUNCH_BLOCKING=1 the trace names the "
        "kernel.",
        patterns=(
            r"illegal memory access",
            r"device-side assert",
            r"unspecified launch failure",
            r"misaligned address",
            r"an illegal instruction was encountered",
        ),
    ),
    Signature(
        id="cuda-error",
        title="a call to the GPU failed",
        explanation="CUDA reports an error that this catalogue does not know more about.",
        mend="The line names the error; `nvidia-smi` on the node shows whether the GPU still answers.",
        patterns=(r"CUDA (driver |runtime )?error[: ]", r"CUBLAS_STATUS_\w+", r"CUDA_ERROR_\w+"),
    ),
)

MACHINE = (
    Signature(
        id="no-space",
        title="a disk is full",
        explanation="The engine could not write: its caches, its compiled kernels, or its log.",
        mend="`df -h` and `docker system df` on the node; the lane's cache mounts are the first place to look.",
        patterns=(r"No space left on device", r"Disk quota exceeded"),
    ),
    Signature(
        id="read-only",
        title="it wants to write where it may only read",
        explanation="A folder is mounted read-only that the engine keeps something in.",
        mend="Mount it for writing, or point the cache (HF_HOME, VLLM_CACHE_ROOT, TRITON_CACHE_DIR) elsewhere.",
        patterns=(r"Read-only file system",),
    ),
    Signature(
        id="no-permission",
        title="it was not allowed to",
        explanation="A file, folder or device belongs to somebody else than the user in the container.",
        mend="Check owner and rights of what the lane mounts, and its devices.",
        patterns=(r"PermissionError", r"[Pp]ermission denied", r"(?<!_mempolicy: )Operation not permitted"),
    ),
    Signature(
        id="limits",
        title="a limit of the machine was reached",
        explanation="Too many open files or threads.",
        mend="Raise the lane's `ulimits` (nofile, nproc).",
        patterns=(
            r"(?<!like .OSError: \[Errno 24\] )Too many open files",
            r"can't start new thread",
            r"pthread_create failed",
        ),
    ),
    Signature(
        id="name-unknown",
        title="a host name does not resolve",
        explanation="The engine asked for a name that this node cannot look up.",
        mend="Use addresses in the spec, or mend the name service of the node.",
        patterns=(r"Temporary failure in name resolution", r"Name or service not known", r"gaierror"),
    ),
)

ENDS = (
    Signature(
        id="killed",
        title="something killed it",
        explanation="Its process got SIGKILL. Where GPU and machine share their memory, the kernel does that without "
        "Docker noticing.",
        mend="`dmesg | grep -i -E 'oom|killed'` on the node tells whether it was the kernel; otherwise a person or "
        "program did it.",
        exit_codes=(137,),
    ),
    Signature(
        id="stopped",
        title="something asked it to stop",
        explanation="Its process got SIGTERM or SIGINT: `docker stop`, or the engine stopping itself after a worker.",
        mend="Look who stopped it: the journal of the node, or another controller.",
        may_follow=True,
        exit_codes=(143, 130),
    ),
    Signature(
        id="crashed",
        title="it crashed",
        explanation="Its process ended by a fault (SIGSEGV or SIGABRT), which is a defect of the engine or a library.",
        mend="Look for the lines above the crash; another image version is the usual way out.",
        patterns=(r"Segmentation fault", r"GGML_ASSERT\(.*failed", r"terminate called after throwing"),
        exit_codes=(134, 139),
    ),
    Signature(
        id="wrong-processor",
        title="its program uses instructions this processor lacks",
        explanation="Its process ended with SIGILL.",
        mend="Use an image that was built for this processor.",
        patterns=(r"Illegal instruction",),
        exit_codes=(132,),
    ),
)
"""Known by how the process ended; the last to be asked."""
