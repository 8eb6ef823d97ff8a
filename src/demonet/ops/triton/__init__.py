"""The primitives on GPUs, as Triton kernels. Importing this needs Triton; nothing else in the package does."""
