"""Every claimed ATen overload: OpInfo's samples, and samples by hand for what none of them reaches."""

import collections
import functools
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")
pytest.importorskip("expecttest", reason="torch's samples need it")

import calls
from kiln.torch.rows import rows

DTYPES = (torch.float32, torch.bfloat16)
MOST = 3  # calls of an overload and a type

# Ops whose samples come to all overloads that any sample comes to; found by tracing all of them.
OPS = """
nn.functional.cosine_embedding_loss quantile clamp nn.functional.interpolate.bicubic cumprod nn.functional.mish norm
prod max_pool2d_with_indices_backward __getitem__ native_group_norm nn.functional.adaptive_avg_pool2d
nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d
nn.functional.avg_pool3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv2d
nn.functional.conv3d nn.functional.layer_norm nn.functional.hardswish nn.functional.unfold
nn.functional.leaky_relu nn.functional.avg_pool2d nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.glu
nn.functional.elu nn.functional.hardsigmoid nn.functional.logsigmoid nn.functional.threshold nn.functional.batch_norm
nn.functional.hardtanh nn.functional.gelu eye nn.functional.smooth_l1_loss nn.functional.embedding
nn.functional.mse_loss all nn.functional.huber_loss nn.functional.pixel_shuffle nn.functional.pixel_unshuffle softmax
log_softmax nn.functional.cross_entropy nn.functional.nll_loss nn.functional.prelu cosh sin cos sinh lgamma
scatter_reduce.sum acosh nn.functional.binary_cross_entropy baddbmm addmm bmm mv dot addmv fmod atan2 xlogy logcumsumexp
pow logical_xor logical_and logical_or nn.functional.pad.replicate nn.functional.pad.reflect nn.functional.pad.constant
torch.ops.aten._scaled_dot_product_flash_attention_for_cpu nn.functional.scaled_dot_product_attention topk ne eq lt le
gt ge roll arange cummax cummin diag floor_divide kthvalue min.reduction_with_dim max.reduction_with_dim isinf isnan
isfinite index_fill index_select index_add index_put new_ones new_zeros full full_like new_empty empty empty_like
empty_permuted new_full zeros_like ones_like zeros ones bucketize searchsorted tile repeat nn.functional.grid_sample
grid_sampler_3d argmax argmin chunk round ceil floor sign sgn split.list_args trunc sort nn.functional.softplus any
torch.ops.aten._safe_softmax.default log1p log10 log2 log select_scatter slice_scatter tanh sigmoid addcmul atan exp2
expm1 exp lerp kron acos asin asinh masked_fill __rsub__ tan nan_to_num erfinv var.unbiased
nn.functional.binary_cross_entropy_with_logits take_along_dim gather scatter scatter_add logsumexp erf erfc
nn.functional.silu atanh remainder hypot addcdiv copysign logaddexp var_mean.unbiased amin amax max.reduction_no_dim
median min.reduction_no_dim std.unbiased min.binary max.binary isclose clamp_max clamp_min std_mean.unbiased stack cat
tril triu flip linalg.vector_norm rsqrt sqrt reciprocal abs neg digamma mean sum cumsum unbind permute transpose t
unsqueeze squeeze expand diagonal unfold nn.functional.relu where bitwise_not logical_not div.floor_rounding
div.trunc_rounding div.no_rounding_mode add sub mul scalar_tensor _softmax_backward_data roll lu_solve stft
nn.functional.linear_cross_entropy view clone contiguous nn.functional.relu6 nn.functional.selu
histc aminmax nansum nn.functional.pairwise_distance nn.functional.celu fmax fmin frac logit isposinf isneginf heaviside
rad2deg deg2rad as_strided_scatter diff diagonal_scatter diag_embed diagonal_copy index_copy take
nn.functional.soft_margin_loss
index_reduce.amax index_reduce.amin index_reduce.mean index_reduce.prod round.decimals_0 round.decimals_3
round.decimals_neg_3 linalg.vecdot unsafe_chunk unsafe_split linalg.cross unfold_copy as_strided_copy grid_sampler_2d
nn.functional.max_unpool2d nn.functional.max_unpool2d.grad nn.functional.max_unpool3d _unsafe_masked_index
_unsafe_masked_index_put_accumulate put nn.functional.pad.replicate_negative addbmm addr block_diag cdist expand_copy
alias_copy isin linspace linspace.tensor_overload logspace logspace.tensor_overload ldexp logaddexp2 masked_scatter
_upsample_bilinear2d_aa nn.functional.bilinear narrow_copy view_copy dist permute_copy rot90 sinc split_with_sizes_copy
signbit angle unbind_copy renorm squeeze_copy unsqueeze_copy zero_ trace transpose_copy logit t_copy count_nonzero
nn.functional.channel_shuffle linalg.det nn.functional.embedding_bag special.xlog1py special.entr
""".split()


def x(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 5, shape).to(dtype)


I, B = torch.int64, torch.bool
NAN = float("nan")
BY_HAND = {
    **{f"{name}.default": lambda d: [(torch.tensor([NAN, -2.0, 0.0, 3.0]).to(d),)] for name in ("sign", "sgn")},
    "heaviside.default": lambda d: [(torch.tensor([NAN, -2.0, 0.0, 3.0]).to(d), torch.full((4,), 0.5).to(d))],
    "hardswish_backward.default": lambda d: [(torch.ones(5).to(d), torch.tensor([-4.0, -3.0, 1.0, 3.0, 4.0]).to(d))],
    "sum.dim_IntList": lambda d: [(torch.tensor([0.5, 0.5, 1.75]).to(d), [0])],
    "nansum.default": lambda d: [(torch.tensor([0.5, NAN, 0.5, 1.75]).to(d),)],
    "constant_pad_nd.default": lambda d: [(x(3, dtype=d), [1, 2], 0.5), (x(3, dtype=B), [1, 2], 0.5),
                                          (x(3, dtype=I), [1, 2], -1.5)],
    "index_fill.int_Scalar": lambda d: [(x(3, 4, dtype=d), 1, torch.tensor([-1, 0]), 2.0)],
    "softshrink.default": lambda d: [(x(9, dtype=d), 0.4)],
    "hardshrink.default": lambda d: [(x(9, dtype=d), 0.4)],
    "softshrink_backward.default": lambda d: [(x(9, dtype=d), x(9, dtype=d), 0.4)],
    "hardshrink_backward.default": lambda d: [(x(9, dtype=d), x(9, dtype=d), 0.4)],
    "silu_backward.default": lambda d: [(x(9, dtype=d), x(9, dtype=d))],
    "mish_backward.default": lambda d: [(x(9, dtype=d), x(9, dtype=d))],
    "fill.Tensor": lambda d: [(x(3, 2, dtype=d), x(1, dtype=d)[0])],
    "arange.start": lambda d: [(2, 7), (2.0, 5.5)],
    "linear.default": lambda d: [(x(2, 3, 4, dtype=d), x(5, 4, dtype=d), x(5, dtype=d)),
                                 (x(3, 4, dtype=d), x(5, 4, dtype=d))],
    "isfinite.default": lambda d: [(torch.tensor([1.0, NAN, float("inf")]).to(d),)],
    "true_divide.Tensor": lambda d: [(x(3, 4, dtype=d), x(4, dtype=d)), (x(3, dtype=I), x(3, dtype=d))],
    "true_divide.Scalar": lambda d: [(x(9, dtype=d), 3)],
    "div.Scalar_mode": lambda d: [(x(9, dtype=d), 0.3)],
    "floor_divide.Scalar": lambda d: [(x(9, dtype=d), 0.3)],
    "fmod.Scalar": lambda d: [(x(9, dtype=d), 0.5)],
    "copysign.Scalar": lambda d: [(x(9, dtype=d), -1.0)],
    "xlogy.Scalar_Other": lambda d: [(x(9, dtype=d), 2.0)],
    "where.ScalarSelf": lambda d: [(x(4, dtype=B), 1.0, x(4, dtype=d))],
    "where.ScalarOther": lambda d: [(x(4, dtype=B), x(4, dtype=d), 1.0)],
    "where.Scalar": lambda d: [(x(4, dtype=B), 1.0, 2.0)],
    "clamp_max.default": lambda d: [(x(9, dtype=d), 0.3)],
    "squeeze.default": lambda d: [(x(3, 1, 2, 1, dtype=d),)],
    "squeeze.dims": lambda d: [(x(3, 1, 2, 1, dtype=d), [1, 2])],
    "any.dims": lambda d: [(x(3, 4, dtype=B), [0, 1])],
    "all.dims": lambda d: [(x(3, 4, dtype=B), [0], True)],
    "alias.default": lambda d: [(x(3, dtype=d),)],
    "reflection_pad2d.default": lambda d: [(x(2, 3, 4, 5, dtype=d), [1, 2, 0, 1])],
    "reflection_pad3d.default": lambda d: [(x(2, 3, 4, 5, 6, dtype=d), [1, 2, 0, 1, 2, 2])],
    "replication_pad3d.default": lambda d: [(x(2, 3, 4, 5, 6, dtype=d), [1, 2, 0, 1, 2, 2])],
    "select_backward.default": lambda d: [(x(3, 5, dtype=d), [3, 4, 5], 1, -2)],
    "slice_backward.default": lambda d: [(x(3, 2, dtype=d), [3, 5], 1, 1, 5, 2)],
    "_native_batch_norm_legit.no_stats": lambda d: [
        (x(3, 4, 5, dtype=d), x(4, dtype=d), x(4, dtype=d), True, 0.1, 1e-5)],
    "_fused_rms_norm.default": lambda d: [
        (x(3, 4, dtype=d), [4], x(4, dtype=d), 1e-6), (x(3, 4, dtype=d), [4], None, None)],
    # Of 16 bits torch's fake statistics are not of the type that its kernel gives.
    "_native_batch_norm_legit_functional.default": lambda d: [
        (x(3, 4, 5), x(4), x(4), x(4), x(4).abs(), training, 0.1, 1e-5) for training in (True, False)],
    "native_dropout_backward.default": lambda d: [(x(9, dtype=d), x(9, dtype=B), 2.0)],
    "copy.default": lambda d: [(x(3, 4, dtype=d), x(4))],
    "norm.Scalar": lambda d: [(x(9, dtype=d), 3)],
    "as_strided.default": lambda d: [(x(3, 4, dtype=d), [2, 2], [1, 4], 1), (x(3, 4, dtype=d).t(), [4, 3], [3, 1])],
    "empty_strided.default": lambda d: [([3, 4], [1, 3])],
    "new_empty_strided.default": lambda d: [(x(2, dtype=d), [3, 4], [1, 3])],
    "prims::convert_element_type.default": lambda d: [(x(9), d), (x(9, dtype=I), d)],
    "pow.Scalar": lambda d: [(2.0, x(9, dtype=d))],
    "permute.default": lambda d: [(x(2, 3, 4, dtype=d), [2, 0, -2])],
    "median.dim": lambda d: [(torch.arange(15).to(d).view(3, 5).flip(1), 1)],
    "avg_pool2d.default": lambda d: [
        (x(2, 3, 6, 7, dtype=d), [2, 3], [2, 2], [1, 1], True, False), (x(3, 6, 7, dtype=d), [2]),
        (x(3, 6, 7, dtype=d), [2], [2], [0], False, True, 3)],
    "avg_pool2d_backward.default": lambda d: [
        (x(2, 3, 3, 4, dtype=d), x(2, 3, 6, 8, dtype=d), [2, 2], [], [0, 0], False, True, None)],
    "replication_pad2d.default": lambda d: [(x(2, 3, 4, 5, dtype=d), [1, 2, 0, 1])],
    "_scaled_dot_product_flash_attention_for_cpu_backward.default": lambda d: list(attention(d)),
    **{f"{name}_pad{n}d_backward.default": lambda d, n=n: [
        (x(2, *SIZES[n], dtype=d), x(2, *(size - 3 for size in SIZES[n]), dtype=d), [1, 2] * n)]
       for name in ("reflection", "replication") for n in (1, 2, 3)},
    "reflection_pad1d_backward.default": lambda d: [(x(2, 7, dtype=d), x(2, 4, dtype=d), [3, 0])],
    "grid_sampler_2d_backward.default": lambda d: list(grids(2, (0, 1, 2))),
    "grid_sampler_3d_backward.default": lambda d: list(grids(3, (0, 1))),
    "max_unpool3d.default": lambda d: [
        (x(2, 3, 2, 2, 2, dtype=d), torch.arange(48).view(2, 3, 2, 2, 2) % 27, [3, 3, 3], [1, 1, 1], [0, 0, 0])],
    "avg_pool3d.default": lambda d: [(x(2, 3, 7, 8, 6), [2], [2], [0], False, True, 3), (x(3, 7, 8, 6), [2])],
    "mkldnn_rnn_layer.default": lambda d: [
        (x(4, 2, 3), x(20, 3), x(20, 5), x(20), x(20), x(1, 2, 5), x(1, 2, 5), reverse, [], 2, 5, 1, True, False,
         False, False) for reverse in (False, True)],
    "_weight_norm_interface.default": lambda d: [
        (x(4, 3, 2, dtype=d), x(4, 1, 1, dtype=d), 0), (x(4, 3, 2, dtype=d), x(1, 1, 2, dtype=d), 2)],
    "_weight_norm_interface_backward.default": lambda d: [
        (x(4, 3, 2), x(4, 3, 2), x(4, 1, 1), x(4, 1, 1).abs() + 1, 0)],
    "_cdist_forward.default": lambda d: [(x(2, 3, 4), x(2, 5, 4), p, None) for p in (1.0, 2.0, 3.0, float("inf"))],
    "_cdist_backward.default": lambda d: [
        (x(2, 3, 5), a, c, p, torch.cdist(a, c, p)) for p in (1.0, 2.0, 3.0) for a, c in [(x(2, 3, 4), x(2, 5, 4))]],
    "_upsample_bilinear2d_aa.default": lambda d: [
        (x(2, 3, 9, 7), [4, 5], False), (x(2, 3, 9, 7), [4, 3], False, .5, .5)],
    "_upsample_bicubic2d_aa.default": lambda d: [(x(2, 3, 9, 7), [4, 5], False), (x(2, 3, 4, 4), [7, 9], False)],
    "_upsample_bilinear2d_aa_backward.default": lambda d: [(x(2, 3, 4, 5), [4, 5], [2, 3, 9, 7], False)],
    "_upsample_bicubic2d_aa_backward.default": lambda d: [(x(2, 3, 4, 5), [4, 5], [2, 3, 9, 7], False)],
    **{f"_embedding_bag{name}.default": lambda d: [
        (x(9, 3, dtype=d), torch.arange(7), torch.tensor([0, 2, 2, 5]), False, mode) for mode in (0, 1, 2)]
       for name in ("", "_forward_only")},
    "_linalg_det.default": lambda d: [(x(2, 4, 4),)],
    "_grouped_mm.default": lambda d: [(x(16, 8, dtype=torch.bfloat16), x(3, 8, 16, dtype=torch.bfloat16),
                                       torch.tensor([5, 5, 16], dtype=torch.int32))],
    "index_put.default": lambda d: [
        (x(3, 4, dtype=d), [x(3, 4, dtype=B)], x(1, dtype=d)[0]), (x(3, 4, dtype=d), [x(3, dtype=B)], x(4, dtype=d)),
        (x(3, 4, 2, dtype=d), [None, x(4, dtype=B)], x(3, 1, 2, dtype=d)),
        (x(3, 4, 2, dtype=d), [x(3, 4, dtype=B)], x(2, dtype=d)),
        (x(3, 4, dtype=d), [None, x(4, dtype=B)], x(1, dtype=d)),
        (x(3, 4, dtype=d), [x(3, dtype=B)], x(1, 4, dtype=d), True),
        (x(3, 4, dtype=d), [torch.tensor([1, -1])], x(4, dtype=d))],
    "masked_scatter.default": lambda d: [(x(3, 4, dtype=d), x(3, 4, dtype=B), x(12, dtype=d)),
                                         (x(3, 4, dtype=d), x(4, dtype=B), x(3, 5, dtype=d))],
    "masked_scatter_backward.default": lambda d: [(x(3, 4, dtype=d), x(3, 4, dtype=B), [14])],
    "as_strided_scatter.default": lambda d: [(x(4, 6, dtype=d), x(2, 3, dtype=d), [2, 3], [7, 2], 3),
                                             (x(4, 6, dtype=d).t(), x(2, 3, dtype=d), [2, 3], [7, 2], 1)],
    "unfold_backward.default": lambda d: [(x(2, 3, 5, 4, dtype=d), [2, 9, 5], 1, 4, 2)],
    "index_fill.int_Tensor": lambda d: [(x(3, 4, dtype=d), 1, torch.tensor([-1, 0]), x(1, dtype=d)[0])],
    "isin.Tensor_Tensor": lambda d: [(x(3, 4, dtype=I), x(2, 2, dtype=I))],
    "median.default": lambda d: [(x(3, 4, dtype=d),), (torch.tensor([1.0, NAN, 2.0]).to(d),)],
    "arange.start_step": lambda d: [(5.0, -4.0, -1.0), (2, 9, 3)],
    "logit_backward.default": lambda d: [(x(9, dtype=d), x(9, dtype=d), eps) for eps in (None, 0.1)],
    **{f"{name}_copy.{overload}": lambda d, rest=rest: [(x(2, 3, 4, dtype=d), *rest)] for name, overload, rest in (
        ("slice", "Tensor", (2, 1, 4, 2)), ("select", "int", (1, -1)), ("split", "Tensor", (2, 1)),
        ("detach", "default", ()), ("squeeze", "dim", (0,)), ("squeeze", "dims", ([0],)),
        ("unbind", "int", (1,)), ("unfold", "default", (2, 2, 1)))},
    "special_xlog1py.other_scalar": lambda d: [(torch.tensor([0.0, 1.5, NAN]).to(d), 2.0)],
    "count_nonzero.dim_IntList": lambda d: [(x(3, 4, dtype=B), [1])],
    "unsafe_split_with_sizes.default": lambda d: [(x(2, 5, dtype=d), [2, 3], 1)],
    **{f"bitwise_{name}.Scalar": lambda d: [(x(9, dtype=I), 3)] for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Tensor": lambda d: [(x(9, dtype=I), x(9, dtype=I))]
       for name in ("xor", "left_shift", "right_shift")},
    **{f"bitwise_{name}.Tensor_Scalar": lambda d: [(x(9, dtype=I), 2)] for name in ("left_shift", "right_shift")},
}
SIZES = {1: (7,), 2: (7, 8), 3: (7, 8, 6)}
KEYWORDS = {"arange.start_step": {"dtype": I}, "div.Scalar_mode": {"rounding_mode": "floor"},
            "sum.dim_IntList": {"dtype": I}, "nansum.default": {"dtype": I}}
# Of no graph of one call: held to eager by test_models.py and test_graphs.py. What draws is in test_random.py.
ELSEWHERE = {"aten.copy_.default"}


def attention(dtype):
    q, k, v = (x(2, 3, 5, 8, dtype=dtype) for _ in range(3))
    for causal in (False, True):
        y, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
        yield x(2, 3, 5, 8, dtype=dtype), q, k, v, y, logsumexp, 0.0, causal


def grids(n, modes):
    """Places inside and outside, of gradients by each kind of padding."""
    for mode in modes:
        for padding in (0, 1, 2):
            for corners in (False, True):
                dy, image, grid = x(2, 3, *[4, 3, 2][:n]), x(2, 3, *[5, 4, 3][:n]), x(2, *[4, 3, 2][:n], n)
                yield dy, image, grid, mode, padding, corners, [True, True]


OTHERS = {
    "torchvision::roi_align.default": lambda: (
        x(2, 3, 8, 9), torch.tensor([[0, 1, 1, 5, 6], [1, 0, 2, 7, 7.5]]), 0.5, 2, 3, 2, True),
    "transformers::grouped_mm_fallback.default": lambda: (
        x(7, 4), x(3, 4, 5), torch.tensor([2, 2, 7], dtype=torch.int32))}


@functools.cache
def database():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {op.name + ("." + op.variant_test_name if op.variant_test_name else ""): op for op in op_db}


reached = collections.Counter()
ran = set()


def run(target, dtype, args, kwargs):
    if reached[target, dtype] < MOST and calls.check(target, args, kwargs) == "":
        reached[target, dtype] += 1


@pytest.mark.parametrize("name", sorted(set(OPS)))
def test_what_opinfo_samples_come_to(name):
    op = database()[name]
    for dtype in DTYPES:
        if dtype in op.dtypes:
            for sample in calls.samples(op, dtype, 3):
                for target, args, kwargs in calls.calls_of(op, sample):
                    run(target, dtype, args, kwargs)
    ran.add(name)


@pytest.mark.parametrize("overload", sorted(BY_HAND))
def test_samples_by_hand(overload):
    target = next(row.target for row in rows() if row.overload == overload)
    for dtype in DTYPES:
        for args in BY_HAND[overload](dtype):
            assert calls.check(target, args, KEYWORDS.get(overload)) == ""
            reached[target, dtype] += 1


@pytest.mark.parametrize("overload", OTHERS)
def test_ops_of_other_libraries(overload):
    library = overload.partition("::")[0]
    pytest.importorskip({"transformers": "transformers.integrations.moe"}.get(library, library),
                        reason=f"{library} is not installed in this environment")
    target = next(row.target for row in rows() if row.overload == overload)
    assert calls.check(target, OTHERS[overload]()) == ""


@pytest.mark.parametrize("target, args, reason", [
    (torch.ops.aten.linalg_inv_ex.default, (torch.eye(3),), "linear algebra"),
    (torch.ops.aten.linalg_cholesky_ex.default, (torch.eye(3),), "linear algebra"),
    (torch.ops.aten._linalg_solve_ex.default, (torch.eye(3), torch.ones(3)), "linear algebra"),
    (torch.ops.aten.special_bessel_j0.default, (torch.ones(3),), "a special function"),
    (torch.ops.aten._fft_r2c.default, (torch.ones(3), [0], 0, True), "complex numbers"),
    (torch.ops.aten._to_copy.default, (torch.ones(3),), "its result is of torch.complex64"),
    (torch.ops.aten.rand_like.default, (torch.ones(3),), "it draws random numbers"),
    (torch.ops.aten.mode.default, (torch.ones(3),), "Kiln has no row for it")])
def test_what_stays_in_torch_says_why(target, args, reason):
    kwargs = {"dtype": torch.complex64} if "_to_copy" in str(target) else {}
    assert reason in calls.check(target, args, kwargs)


def test_every_row_is_reached():
    if ran != set(OPS):
        pytest.skip("not all ops ran")
    missed = [str(row.target) for row in rows()
              if row.name not in ELSEWHERE and "::" not in row.overload.replace("prims::", "")
              and not any(reached[row.target, dtype] for dtype in DTYPES)]
    assert not missed, " ".join(missed)
