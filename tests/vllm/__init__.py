"""A real vLLM without a GPU, on the lab's nodes: `make test-vllm` installs it, and tests what `fleet` makes of it."""
