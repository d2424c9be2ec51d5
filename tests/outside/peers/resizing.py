"""Images of other sizes, and at other places."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


@peer("resample", "none: numpy, by its definition")
def resample(c):
    x, weights, indices = c.x
    parts = np.take(x, indices.ravel(), c.dim)
    parts = np.moveaxis(parts, c.dim, -1).reshape(*np.moveaxis(x, c.dim, -1).shape[:-1], *weights.shape)
    with np.errstate(invalid="ignore"):
        products = np.where(weights == 0, 0, parts * weights)
    return np.moveaxis(products.sum(-1), -1, c.dim)


@peer("resize_nearest", "torch.nn.functional.interpolate: nearest, nearest-exact")
def resize_nearest(c):
    """What moves is found by positions, which float64 holds; PyTorch refuses an empty batch."""
    x = c.x[0]
    positions = torch.arange(x.size, dtype=torch.float64).reshape(x.shape)
    if x.size == 0:
        return np.zeros((*x.shape[:2], *c.size), x.dtype)
    y = interpolate(c, positions, "nearest-exact" if c.half_pixel else "nearest")
    return x.ravel()[y.numpy().astype(np.int64)]


def interpolate(c, x, mode, **options):
    if c.scale:
        assert [int(size * scale) for size, scale in zip(x.shape[2:], c.scale)] == c.size
        return F.interpolate(x, scale_factor=tuple(c.scale), mode=mode, **options)
    return F.interpolate(x, c.size, mode=mode, **options)


def by_definition(c, x, cubic):
    """From the edges: the filter's values at all distances, with x's ends repeated."""
    reach = 2 if cubic else 1
    for d, size in enumerate(c.size):
        count = x.shape[2 + d]
        places = np.arange(size) * count / size
        taps = np.arange(-reach, count + reach)
        u = np.abs(taps - places[:, None])
        a = -0.75
        weights = np.where(u <= 1, ((a + 2) * u - (a + 3)) * u * u + 1, np.where(
            u < 2, (((u - 5) * u + 8) * u - 4) * a, 0)) if cubic else np.maximum(1 - u, 0)
        x = np.moveaxis(np.moveaxis(np.take(x, np.clip(taps, 0, count - 1), 2 + d), 2 + d, -1) @ weights.T, -1, 2 + d)
    return x


def resize(c, cubic):
    x = c.tensor(0)
    if x.numel() == 0:  # which PyTorch refuses
        return np.zeros((*x.shape[:2], *c.size))
    if not c.half_pixel and not c.align_corners:
        return by_definition(c, c.x[0], cubic)
    mode = "bicubic" if cubic else {3: "linear", 4: "bilinear", 5: "trilinear"}[x.ndim]
    return interpolate(c, x, mode, align_corners=c.align_corners, antialias=c.antialias)


@peer("resize_linear", "torch.nn.functional.interpolate: linear, bilinear, trilinear; numpy without half_pixel")
def resize_linear(c):
    return resize(c, cubic=False)


@peer("resize_cubic", "torch.nn.functional.interpolate: bicubic; numpy without half_pixel")
def resize_cubic(c):
    return resize(c, cubic=True)


@peer("grid_sample", "torch.nn.functional.grid_sample")
def grid_sample(c):
    """PyTorch's own words for the modes; NaN is -1 there, too, by its documentation."""
    x, grid = c.tensor(0), torch.nan_to_num(c.tensor(1), -1, torch.inf, -torch.inf)
    if grid.numel() == 0:
        return np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(c.mode, c.mode)
    return F.grid_sample(x, grid.clamp(-1e6, 1e6), mode, c.padding, c.align_corners)


@peer("affine_grid", "torch.nn.functional.affine_grid")
def affine_grid(c):
    theta = c.tensor(0)
    return F.affine_grid(theta, [theta.shape[0], 1, *c.size], c.align_corners)


def resize_backward(forward):
    """By the result for each unit vector: all of them resize linearly."""
    def gradient(c):
        dy = c.x[0]
        if dy.size == 0:
            return np.zeros((*dy.shape[:2], *c.size))
        count = int(np.prod(c.size))
        units = np.eye(count).reshape(count, 1, *c.size)
        attrs = {**c.attrs, "size": list(dy.shape[2:])}
        results = np.asarray(forward(type(c)([units], ["f64"], attrs, c.run)))
        sums = dy.reshape(-1, int(np.prod(dy.shape[2:]))) @ results.reshape(count, -1).T
        return sums.reshape(*dy.shape[:2], *c.size)
    return gradient


for resizing in (resize_nearest, resize_linear, resize_cubic):
    name = resizing.__name__
    peer(f"{name}_backward", f"the transpose of what {name}'s peer does")(resize_backward(resizing))
