"""flex_attention in inference: score and mask functions become graphs that Kiln's attention carries."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import kiln.torch

SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [0, 1, 1, 1, 1, 1, 1, 2, 2]])
BIAS = torch.linspace(-1, 1, 2 * 4 * 17).view(2, 4, 17)

SCORES = {
    "none": None,
    "causal": lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")),
    "alibi": lambda s, b, h, i, j: s + SLOPES[h] * (j - i),
    "captured": lambda s, b, h, i, j: s + BIAS[b, h, i - j + 8] * SLOPES[h],
    "captured one by one": lambda s, b, h, i, j: s + BIAS[b][h][i - j + 8],
    "capped": lambda s, b, h, i, j: 2 * torch.tanh(s / 2),
    "a constant": lambda s, b, h, i, j: torch.zeros_like(s),
}
MASKS = {
    "none": None,
    "causal": lambda b, h, i, j: i >= j,
    "window": lambda b, h, i, j: (i - j).abs() <= 2,
    "documents": lambda b, h, i, j: (DOCUMENTS[b, i] == DOCUMENTS[b][j]) & (i >= j),
    "of heads": lambda b, h, i, j: (h % 2 == 0) | (j < 3),
    "nothing is seen": lambda b, h, i, j: (i > 2) & (i >= j),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of eager, that it is slow
        yield


def attention(score, mask, **said):
    def run(q, k, v):
        block_mask = mask and create_block_mask(mask, 2, 4, q.shape[2], k.shape[2], device="cpu")
        return flex_attention(q, k, v, score_mod=score, block_mask=block_mask, **said)
    return run


def inputs(heads=4, groups=4, queries=9, keys=9, batch=2, dtype=torch.float32):
    return [torch.randn(n, h, length, 8).to(dtype)
            for n, h, length in ((2, heads, queries), (batch, groups, keys), (batch, groups, keys))]


def check(function, *given, run=None, strict=True):
    """As eager in f64, to 1e-12 and, of f32, 1e-5; all in one program."""
    run = run or torch.compile(function, backend=kiln.torch.backend, fullgraph=True, options={"strict": strict})
    got = run(*given)
    expected = function(*(x.double() for x in given))
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}[given[0].dtype]
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, check_dtype=False)
    assert all(report.parts == 1 for report in kiln.torch.reports())
    return got


@pytest.mark.parametrize(("score", "mask"), [*((score, "none") for score in SCORES), *(("alibi", mask) for mask in MASKS)])
def test_functions_are_graphs(score, mask):
    check(attention(SCORES[score], MASKS[mask]), *inputs(dtype=torch.float64 if mask == "none" else torch.float32))
    (report,) = kiln.torch.reports()
    assert report.ops == 1  # with nothing left of the blocks that the mask was made into


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_groups_of_heads_and_other_lengths(dtype):
    function = attention(SCORES["alibi"], MASKS["causal"], enable_gqa=True, scale=0.3)
    check(function, *inputs(groups=2, dtype=dtype))
    check(function, *inputs(groups=1, queries=5, batch=1, dtype=dtype))


def test_scores_of_16_bits_are_computed_in_32():
    bias = torch.full((4,), 1.0, dtype=torch.bfloat16)

    def score(s, b, h, i, j):
        return (s + 1000 * bias[h]) - 1000

    check(attention(score, None), *inputs(dtype=torch.bfloat16))


def test_the_log_of_the_sum_is_given_and_infinite_where_nothing_is_seen():
    function = attention(SCORES["alibi"], MASKS["nothing is seen"], return_lse=True)
    y, lse = check(function, *inputs())
    assert (lse[:, :, :3] == -float("inf")).all() and (y[:, :, :3] == 0).all() and lse[:, :, 3:].isfinite().all()


def test_scores_that_hide_all_give_zeros():
    y = check(attention(lambda s, b, h, i, j: torch.where(i > 1, s, -float("inf")), None), *inputs())
    assert (y[:, :, :2] == 0).all()


def test_one_compile_serves_all_sizes():
    table = torch.randn(32)

    def function(q, k, v, documents):
        mask = create_block_mask(lambda b, h, i, j: (documents[b, i] == documents[b, j]) & (i >= j), 2, None,
                                 q.shape[2], k.shape[2], device="cpu")
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + table[i - j + 16].to(s.dtype),
                              block_mask=mask)

    run = torch.compile(function, backend=kiln.torch.backend, fullgraph=True, dynamic=True, options={"strict": True})
    for n in (5, 9, 12):
        q, k, v = inputs(queries=n, keys=n)
        documents = (torch.arange(n) // 3).expand(2, n)
        expected = function(q.double(), k.double(), v.double(), documents)
        torch.testing.assert_close(run(q, k, v, documents), expected, rtol=1e-5, atol=1e-5, check_dtype=False)
    assert len(kiln.torch.reports()) == 1


def test_a_number_that_changes_is_captured():
    def function(q, k, v, window):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where((i - j).abs() < window, s, -1e9))

    run = torch.compile(function, backend=kiln.torch.backend, fullgraph=True, dynamic=True)
    for window in (2, 4, 7):
        q, k, v = inputs()
        torch.testing.assert_close(run(q, k, v, window), function(q, k, v, window), rtol=1e-5, atol=1e-5)
    assert len(kiln.torch.reports()) == 1


def test_a_mask_that_was_made_outside():
    mask = create_block_mask(MASKS["window"], None, None, 300, 300, device="cpu")  # of several blocks

    def function(q, k, v):
        return flex_attention(q, k, v, block_mask=mask)

    check(function, *inputs(queries=300, keys=300))


def test_functions_that_kiln_has_no_graph_for_stay_in_torch():
    table = torch.randn(9, 6)

    def sums(s, b, h, i, j):
        return s + torch.cumsum(table[i], 0)[j % 6]

    q, k, v = inputs()
    function = attention(sums, MASKS["causal"])
    got = torch.compile(function, backend=kiln.torch.backend)(q, k, v)
    torch.testing.assert_close(got, function(q, k, v), rtol=1e-5, atol=1e-5)
    assert "more than a number of an element" in str(kiln.torch.reports()[-1]), kiln.torch.summary()


def test_functions_are_part_of_the_key(cache):
    q, k, v = inputs()
    for slope, lookup in ((0.5, "MISS"), (0.5, "HIT"), (0.25, "MISS")):
        torch._dynamo.reset()
        check(attention(lambda s, b, h, i, j: s + slope * (j - i), None), q, k, v)
        assert kiln.torch.reports()[-1].programs[0]["lookup"] == lookup
