"""The phases and the fatal lines of each engine, found in lines as the engines write them."""

import re

import pytest

from reconciler.engines import ENGINES

LINES: dict[str, list[tuple[str, str | None]]] = {
    "vllm": [
        ("INFO 06-02 00:50:01 [api_server.py:1] vLLM API server version 0.19.0", "image"),
        ("(APIServer pid=1) INFO 06-02 00:50:01 [api_utils.py:286] non-default args: {'model_tag': '/m'}", "image"),
        ("INFO 06-02 00:50:01 [serve.py:1] Launching vLLM (v0.32.0) headless multiproc executor, with head", "image"),
        ("ray: 1 of 2 nodes have joined", "image"),
        (
            (
                "(EngineCore pid=9) INFO [core.py:134] Initializing a V1 LLM engine (v0.32.0) with config: "
                "enable_flashinfer_autotune=None, compilation_config={'cudagraph_capture_sizes': [1]}"
            ),
            None,
        ),
        ("(Worker_TP0 pid=3) INFO [gpu_model_runner.py:5040] Starting to load model /m/folder...", "weights"),
        ("Loading safetensors checkpoint shards:  56% Completed | 5/9 [00:13<00:11,  2.87s/it]", "load"),
        ("(Worker_TP0 pid=3) INFO [default_loader.py:384] Loading weights took 24.84 seconds", "load"),
        ("INFO [gpu_model_runner.py:4879] Model loading took 12.66 GiB memory and 31.657031 seconds", "compile"),
        ("INFO [backends.py:1128] Dynamo bytecode transform time: 3.54 s", "compile"),
        ("[AutoTuner]: Autotuning process starts ...", "compile"),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|          | 0/67", "capture"),
        ("(APIServer pid=1) INFO [api_server.py:140] Starting vLLM server on http://0.0.0.0:30000", "api"),
        ("INFO:     Application startup complete.", "api"),
    ],
    "sglang": [
        ("[2025-12-23 14:17:50] server_args=ServerArgs(model_path='/m', enable_torch_compile=False)", "image"),
        ("[2025-12-23 14:18:00 TP0] Init torch distributed begin.", "image"),
        ("[2025-12-23 14:18:01 TP0] Load weight begin. avail mem=46.81 GB", "weights"),
        ("Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:01,  2.32it/s]", "load"),
        ("[2025-12-23 14:18:09 TP0] Load weight end. type=Gemma3, dtype=torch.bfloat16", "compile"),
        ("[2025-12-23 14:18:10 TP0] KV Cache is allocated. #tokens: 834615, K size: 54.12 GB", "compile"),
        ("[2025-12-23 14:18:11 TP0] Capture cuda graph begin. This can take up to several minutes.", "capture"),
        ("[2025-12-23 14:18:11 TP0] Capture target decode CUDA graph begin. backend=full, bs=[1, 2]", "capture"),
        ("Capturing batches (avail_mem=12.55 GB):   0%|   | 0/23 [00:00<?, ?it/s]", "capture"),
        ("[2025-12-23 14:18:40] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)", "api"),
        ("[2025-12-23 14:18:41] Dummy health check server scheduled on existing loop at 0.0.0.0:30000", "api"),
        ("[2025-12-23 14:18:45] The server is fired up and ready to roll!", "api"),
    ],
    "llamacpp": [
        ("srv    load_model: loading model '/m/tiny.gguf'", "weights"),
        ("llama_model_loader: loaded meta data with 25 key-value pairs and 12 tensors", "weights"),
        ("load_tensors: loading model tensors, this can take a while... (mmap = true)", "load"),
        ("llama_context: constructing llama_context", "compile"),
        ("common_init_from_params: warming up the model with an empty run - please wait ...", "capture"),
        ("main: server is listening on http://0.0.0.0:30000 - starting the main loop", "api"),
    ],
}

FATAL = [
    ("vllm", "(EngineCore pid=9) ERROR [core.py:1510] EngineCore failed to start."),
    ("vllm", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"),
    ("vllm", "Exception: WorkerProc initialization failed due to an exception in a background process."),
    ("vllm", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"),
    (
        "vllm",
        "ValueError: enable_flashinfer_autotune and kernel_config.enable_flashinfer_autotune are mutually exclusive",
    ),
    ("vllm", "vllm serve: error: unrecognized arguments: --no-such-flag"),
    ("vllm", "ray: only 1 of 2 nodes joined within 600 s"),
    ("sglang", "[2025-12-23 14:18:01 TP0] Scheduler hit an exception: Traceback (most recent call last):"),
    ("sglang", "[2025-12-23 14:18:01] Received sigquit from a child process. It usually means the child failed."),
    ("sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
    ("sglang", "launch_server.py: error: unrecognized arguments: --no-such-flag"),
    ("llamacpp", "llama_model_load: error loading model: tensor 'x' data is not within the file bounds"),
    ("llamacpp", "srv    load_model: failed to load model, '/m/tiny.gguf'"),
    ("llamacpp", "error: invalid argument: --no-such-flag"),
    ("llamacpp", "start: couldn't bind HTTP server socket, hostname: 0.0.0.0, port: 30000"),
]


@pytest.mark.parametrize(
    ("engine", "line", "expected"), [(name, *row) for name, rows in LINES.items() for row in rows], ids=str
)
def test_a_line_tells_the_phase_that_began(engine: str, line: str, expected: str | None) -> None:
    found = [phase.name for phase in ENGINES[engine].phases if re.search(phase.pattern, line)]
    assert ([] if expected is None else [expected]) == found


@pytest.mark.parametrize(("engine", "line"), FATAL)
def test_a_line_ends_all_hope(engine: str, line: str) -> None:
    assert any(re.search(pattern, line) for pattern in ENGINES[engine].fatal)


@pytest.mark.parametrize("engine", LINES)
def test_no_line_of_a_good_boot_is_fatal(engine: str) -> None:
    lines = [line for line, _ in LINES[engine]]
    assert [] == [line for line in lines if any(re.search(pattern, line) for pattern in ENGINES[engine].fatal)]
