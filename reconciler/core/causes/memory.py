"""Memory: of the GPU, of the machine, of what both share, and what is locked or shared of it.

Wordings after the sources and public issue threads of vLLM 0.6 to 0.32, SGLang 0.4, llama.cpp b3900 to b9700 and
PyTorch 2.5 to 2.13.
"""

from reconciler.core.causes.signature import Signature

OOM_KILLED = Signature(
    id="oom-killed",
    title="the kernel ended it because its memory ran out",
    explanation="Docker saw the kernel's out-of-memory killer end a process of this container.",
    mend="Look at what else holds memory on the node, lower the lane's memory (context, sequences, utilization), or "
    "give it more nodes.",
)
"""Known by Docker's own flag, not by a line."""

MEMORY = (
    Signature(
        id="gpu-memory-taken",
        title="GPU memory was still held by something else when it started",
        explanation="vLLM found less free GPU memory than gpu-memory-utilization asks for, before it loaded anything.",
        mend="Find what holds the memory (`nvidia-smi`, `docker ps` on the node) and stop it, or lower "
        "gpu-memory-utilization.",
        patterns=(r"Free memory on device .*is less than desired GPU memory utilization",),
    ),
    Signature(
        id="gpu-memory-moved",
        title="another process gave back GPU memory while the engine measured it",
        explanation="vLLM measures what is free while it loads; a process that ends meanwhile makes the figures wrong.",
        mend="Apply again when nothing else on the node stops or starts.",
        patterns=(r"Error in memory profiling\. .*free memory",),
    ),
    Signature(
        id="context-too-long",
        title="the context does not fit into the KV cache",
        explanation="What is left of the GPU memory behind the weights holds fewer tokens than one request may have.",
        mend="Lower max-model-len (the engine's message says how far), raise gpu-memory-utilization, or use an fp8 KV "
        "cache.",
        patterns=(
            r"max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache",
            r"KV cache is needed, which is larger than the available KV cache memory",
        ),
    ),
    Signature(
        id="no-kv-memory",
        title="no memory is left for the KV cache",
        explanation="The weights and the working memory take all that the engine may use of the GPU.",
        mend="Raise gpu-memory-utilization (SGLang: mem-fraction-static), use more GPUs or a smaller quantization.",
        patterns=(
            r"No available memory for the cache blocks",
            r"Not enough memory\. Please try to increase --mem-fraction-static",
        ),
    ),
    Signature(
        id="memlock-limit",
        title="the fabric may not lock enough memory",
        explanation="RDMA registers memory, which needs an unlimited memlock limit inside the container.",
        mend="Give the lane `ulimits: {memlock: -1}`.",
        patterns=(r"ibv_(reg_mr|create_cq|create_qp)\S* failed with error Cannot allocate memory",),
    ),
    Signature(
        id="shm-too-small",
        title="shared memory is too small",
        explanation="The workers of one node exchange data in /dev/shm, and Docker's default of 64 MB is used up.",
        mend="Raise the lane's `shm_size`; 16GiB is usual.",
        patterns=(
            r"insufficient shared memory \(shm\)",
            r"Error while (creating|attaching to) shared memory segment",
            r"unable to (mmap|open|allocate|resize|write) .*(/dev/shm|shared memory)",
            r"No space left on device.*(/dev/shm|/torch_\d+_|nccl-)",
            r"(/dev/shm|/torch_\d+_|nccl-).*No space left on device",
        ),
        exit_codes=(135,),
    ),
    Signature(
        id="graph-capture-failed",
        title="capturing the CUDA graphs failed",
        explanation="The engine could not record its graphs, mostly because the KV cache left it no memory for them.",
        mend="Lower mem-fraction-static (vLLM: gpu-memory-utilization) or the largest capture size; with "
        "disable-cuda-graph it starts, slower.",
        patterns=(r"Capture cuda graph failed",),
    ),
    Signature(
        id="gpu-out-of-memory",
        title="the GPU ran out of memory",
        explanation="An allocation on the GPU failed while the engine loaded or warmed up.",
        mend="Lower gpu-memory-utilization, max-num-seqs or max-num-batched-tokens, spread the model over more GPUs, "
        "or see what else is on this one.",
        patterns=(
            r"CUDA out of memory",
            r"OutOfMemoryError",
            r"cudaMalloc failed: out of memory",
            r"CUDA (driver )?error: out of memory",
            r"(CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory)",
            r"buffer_type_alloc_buffer: allocating .* failed",
        ),
    ),
    Signature(
        id="host-out-of-memory",
        title="the machine ran out of memory",
        explanation="An allocation in the machine's own memory failed.",
        mend="Stop what else runs on the node, lower CPU offload or swap space of the engine, or load the weights in "
        "smaller pieces.",
        patterns=(
            r"std::bad_alloc",
            r"(?<!\w)MemoryError(?!\w)",
            r"DefaultCPUAllocator: (can't|not enough)",
            r"unable to allocate (CPU|backend|RPC)\S* buffer",
            r"(?<!with error )Cannot allocate memory",
        ),
    ),
)
