"""Pooling, and windows as columns."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


def pools(n):
    """The pooling ops of n dims."""
    function = {name: getattr(F, f"{name}{n}d") for name in
                ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")}

    def numbers(c):
        """PyTorch pools integers of 64 bits in 2 dims alone; float64 has those of the samples."""
        return torch.from_numpy(c.x[0].astype(np.float64))

    @peer(f"max_pool{n}d", f"torch.nn.functional.max_pool{n}d")
    def max_pool(c):
        y = function["max_pool"](numbers(c), c.kernel, c.stride or None, c.padding, c.dilation or 1, c.ceil_mode)
        return y.numpy().astype(c.x[0].dtype)

    @peer(f"max_pool{n}d_with_indices", f"torch.nn.functional.max_pool{n}d")
    def max_pool_with_indices(c):
        """Of several NaN PyTorch gives the last one's index."""
        y, indices = function["max_pool"](numbers(c), c.kernel, c.stride or None, c.padding, c.dilation or 1,
                                          c.ceil_mode, return_indices=True)
        return [y.numpy().astype(c.x[0].dtype), indices]

    def sum_of_windows(c, x):
        """The windows of x behind its dims, summed; zeros lie where they reach beyond it."""
        steps, apart = c.stride or c.kernel, c.dilation or [1] * n
        extents = [(k - 1) * d + 1 for k, d in zip(c.kernel, apart)]
        counts = F.max_pool3d(torch.zeros(1, 1, *[1] * (3 - n), *x.shape[2:]), *[[1] * (3 - n) + each for each in (
            c.kernel, steps)], [0] * (3 - n) + c.padding, [1] * (3 - n) + apart, c.ceil_mode).shape[-n:]
        after = [max(0, (count - 1) * step + extent - size - low) for count, step, extent, size, low in zip(
            counts, steps, extents, x.shape[2:], c.padding)]
        x = np.pad(x, [(0, 0), (0, 0), *zip(c.padding, after)])
        windows = np.lib.stride_tricks.sliding_window_view(x, extents, range(2, 2 + n))
        windows = windows[(..., *(slice(None, None, step) for step in steps), *(slice(None, None, d) for d in apart))]
        windows = windows[(slice(None), slice(None), *(slice(count) for count in counts))]
        return windows.sum(tuple(range(-n, 0)), dtype=x.dtype)

    @peer(f"sum_pool{n}d", "none: numpy, sums of sliding windows")
    def sum_pool(c):
        return sum_of_windows(c, c.x[0])

    @peer(f"lp_pool{n}d", f"torch.nn.functional.lp_pool{n}d of |x|; where it has no such windows, numpy")
    def lp_pool(c):
        """PyTorch's does not take |x|, knows no padding and dilation, and weighs windows that are cut."""
        size = c.tensor(0).abs()
        if np.isinf(c.p) or any(c.padding) or c.dilation or c.ceil_mode:
            return sum_of_windows(c, size.numpy() ** c.p) ** (1 / c.p) if np.isfinite(c.p) else (
                function["max_pool"](size, c.kernel, c.stride or None))
        kernel, stride = (c.kernel, c.stride or None) if n > 1 else (c.kernel[0], (c.stride or c.kernel)[0])
        return getattr(F, f"lp_pool{n}d")(size, c.p, kernel, stride)

    @peer(f"max_unpool{n}d", "none: numpy, by its definition")
    def max_unpool(c):
        """PyTorch leaves open which of two elements for one place stays."""
        x, indices = (each.reshape(-1, int(np.prod(each.shape[2:]))) for each in c.x)
        y = np.zeros((x.shape[0], int(np.prod(c.size))), x.dtype)
        for plane, (values, places) in enumerate(zip(x, indices)):
            for value, place in zip(values, places):
                y[plane, place] = value
        return y.reshape(*c.x[0].shape[:2], *c.size)

    @peer(f"avg_pool{n}d", f"torch.nn.functional.avg_pool{n}d")
    def avg_pool(c):
        return function["avg_pool"](c.tensor(0), c.kernel, c.stride or None, c.padding, c.ceil_mode, c.count_include_pad)

    @peer(f"adaptive_avg_pool{n}d", f"torch.nn.functional.adaptive_avg_pool{n}d")
    def adaptive_avg_pool(c):
        return function["adaptive_avg_pool"](c.tensor(0), c.size)

    @peer(f"adaptive_max_pool{n}d", f"torch.nn.functional.adaptive_max_pool{n}d")
    def adaptive_max_pool(c):
        return function["adaptive_max_pool"](numbers(c), c.size).numpy().astype(c.x[0].dtype)

    @peer(f"adaptive_max_pool{n}d_with_indices", f"torch.nn.functional.adaptive_max_pool{n}d")
    def adaptive_max_pool_with_indices(c):
        """Of several NaN PyTorch gives the last one's index."""
        y, indices = function["adaptive_max_pool"](numbers(c), c.size, return_indices=True)
        return [y.numpy().astype(c.x[0].dtype), indices]


for dims in (1, 2, 3):
    pools(dims)


@peer("global_avg_pool", "torch.mean")
def global_avg_pool(c):
    return c.tensor(0).mean(tuple(range(2, c.x[0].ndim)), keepdim=True)


@peer("global_max_pool", "numpy.max")
def global_max_pool(c):
    return c.x[0].max(tuple(range(2, c.x[0].ndim)), keepdims=True)


def padding_of(c, n):
    """Before and after each dim."""
    pairs = c.padding if len(c.padding) == 2 * n else [each for each in c.padding or [0] * n for _ in (0, 1)]
    return np.reshape(pairs, (n, 2)).tolist()


def columns_of(c, x):
    """The windows as columns, of any element type and count of dims."""
    n = len(c.kernel)
    steps, apart = c.stride or [1] * n, c.dilation or [1] * n
    x = np.pad(x, [(0, 0), (0, 0), *padding_of(c, n)])
    extents = [(k - 1) * d + 1 for k, d in zip(c.kernel, apart)]
    windows = np.lib.stride_tricks.sliding_window_view(x, extents, range(2, 2 + n))
    windows = windows[(..., *(slice(None, None, step) for step in (*steps, *apart)))]
    columns = np.moveaxis(windows, range(2, 2 + n), range(-n, 0))
    return columns.reshape(x.shape[0], x.shape[1] * int(np.prod(c.kernel)), int(np.prod(windows.shape[2:2 + n])))


@peer("im2col", "torch.nn.functional.unfold; of integers, uneven padding and 1 or 3 dims numpy's sliding windows")
def im2col(c):
    n = len(c.kernel)
    if n == 2 and c.is_float and len(c.padding) != 4:
        return F.unfold(c.tensor(0), c.kernel, c.dilation or 1, c.padding or 0, c.stride or 1)
    return columns_of(c, c.x[0])


@peer("col2im", "torch.nn.functional.fold; of integers, uneven padding and 1 or 3 dims numpy.add.at")
def col2im(c):
    n = len(c.kernel)
    if n == 2 and c.is_float and len(c.padding) != 4 and c.x[0].shape[0]:
        return F.fold(c.tensor(0), c.size, c.kernel, c.dilation or 1, c.padding or 0, c.stride or 1)
    x = c.x[0]
    y = np.zeros((x.shape[0], x.shape[1] // int(np.prod(c.kernel)), *c.size), x.dtype)
    places = columns_of(c, np.arange(1, y.size + 1).reshape(y.shape))  # 0: padding
    sums = np.zeros(y.size + 1, x.dtype)
    np.add.at(sums, places, x)
    return sums[1:].reshape(y.shape)
