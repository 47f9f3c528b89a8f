"""Sizes at which the CPU takes another way: blocks that fit caches, work that is worth a thread.

All are measured; none changes a result by more than rounding. They are read when a function is
called, so that a test sets one to have small arrays take the way of large ones, and so may a user
whose machine is another:

>>> from tensorflow_lite_clone.backends.numpy.tuning import tuning
>>> tuning.block_elements
393216
"""

from __future__ import annotations


class Tuning:
    """The sizes, in elements where nothing else is said.

    A plain class, as `dataclasses` is a module that the package's start does without.
    """

    #: Of a block in all its arrays: as float32 they fit into L2.
    block_elements: int = 3 << 17
    #: Below this, elementwise functions, softmax and losses gain more from few calls than from
    #: blocks and threads.
    small_elementwise: int = 4096
    #: The same for normalizations.
    small_normalization: int = 2048

    #: Attention: scores at a time; of one matrix, below which all matrices at once are faster;
    #: for each thread.
    attention_block: int = 1 << 17
    attention_small: int = 1 << 8
    attention_per_thread: int = 1 << 18

    #: Gathering and scattering: indices (or elements of rows) from which our loop beats NumPy's;
    #: elements of such a row; indices at a time; indices for each thread.
    gather_minimum: int = 1 << 13
    gather_row: int = 16
    gather_block: int = 1 << 18
    gather_per_thread: int = 1 << 19

    #: Sums: from here on BLAS adds up, in runs of so many, in a fifth of NumPy's time.
    blas_sum_elements: int = 1 << 16
    blas_sum_run: int = 256
    #: Extremes: elements that a thread searches.
    extremes_per_thread: int = 1 << 20
    #: Copies along strides that threads share.
    shared_copy: int = 1 << 21

    #: Convolutions by matrix products: ns of work for each thread; bytes of a block of columns.
    convolution_thread_ns: int = 150_000
    im2col_bytes: int = 1 << 21
    #: Depthwise convolutions: of each array of a block, so that a call lasts 0.05 ms.
    depthwise_block: int = 1 << 19
    #: Winograd: windows of all samples from which it pays (to transform the weight takes as long
    #: as 200 of them), for its gradient less; results computed for each one that is asked for.
    winograd_windows: int = 512
    winograd_gradient_windows: int = 128
    winograd_waste: float = 2.0
    #: Winograd: elements of a piece's tiles; of the transformed weight at a time; pairs of
    #: channels of its gradient at a time; elements per point up to which all is one piece; ns of
    #: work for each thread.
    winograd_tile_elements: int = 1 << 12
    winograd_weight_block: int = 1 << 15
    winograd_gradient_block: int = 1 << 14
    winograd_single_piece: int = 1 << 17
    winograd_thread_ns: int = 200_000

    #: Pooling: of a block; for each thread.
    pooling_block: int = 1 << 17
    pooling_per_thread: int = 1 << 18

    #: LSTM: columns of all steps, from which a copy of the weights is repaid.
    lstm_columns: int = 8

    #: Optimizers: of a parameter at a time; of a parameter that NumPy updates as fast; for each
    #: thread, which gets blocks one by one.
    optimizer_block: int = 1 << 18
    optimizer_small: int = 1 << 12
    optimizer_per_thread: int = 1 << 19

    #: Chains of pointwise calls: from which they are joined; elements times calls that are worth
    #: tiles; that are worth a compiled loop, which takes 0.1 s to compile.
    chain_elements: int = 1 << 17
    chain_work: int = 1 << 22
    chain_compiled: int = 1 << 17
    #: Tiles of a chain: in all arrays, so that as float32 they fit into L2, and at least; beside
    #: other threads, which wait for each other after every step; for each thread, of one step.
    tile_elements: int = 3 << 16
    tile_minimum: int = 1 << 14
    tile_shared: int = 1 << 17
    tile_per_thread: int = 1 << 21

    #: Compiled kernels: elements of an op's calls that repay compiling, 0 where that is wanted at
    #: the first call; elements that make up for a call itself. NumPy loses 2 ns for each element
    #: and 16 us a call (medians of 24 ops, 1 thread): 0.3 s in all, for what takes 0.2 to 4 s once.
    compiled_after: int = 1 << 27
    compiled_call: int = 1 << 13
    #: Compiled kernels: elements that are worth a thread, about 100 us.
    compiled_per_thread: int = 1 << 18
    #: Compiled convolutions: elements of lines that a core's cache holds beside the results.
    compiled_lines: int = 1 << 17
    #: Weights up to which NumPy's matrix products are as fast, with 2 threads: of images of many
    #: pixels (32 images, 128 x 128 channels of 16 x 16 pixels 6.6 ms, NumPy 7.5; 16 images, 256 x
    #: 256 of 8 x 8 3.5 and 4.4, 512 x 512 of 4 x 4 5.6 and 4.0), and of few (128 x 128 of one image
    #: of 16 x 16 0.44 and 0.29; 64 x 64 of 8 x 8 0.05 and 0.06).
    compiled_weights: int = 1 << 20
    compiled_weights_of_few_pixels: int = 1 << 16


tuning = Tuning()
