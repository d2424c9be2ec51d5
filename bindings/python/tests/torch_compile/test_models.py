"""Small models of the usual kinds: in eval, in a training step with gradients, with sizes that change."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch import nn
from torch.nn import functional as F

import kiln.torch


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.pool = nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.MaxPool2d(2)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.second(F.silu(self.norm(self.first(x))))))
        return self.head(x.mean((2, 3)))


class Residual(nn.Module):
    """Groups, depthwise and transposed convolutions, resizing: of a U-Net."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 5, 1)

    def forward(self, x):
        y = F.hardswish(self.norm(self.down(x)))
        y = y + self.depth(F.avg_pool2d(y, 3, 1, 1))
        z = F.interpolate(y, scale_factor=2.0, mode="bilinear")[:, :4]
        return self.out(torch.cat([x, self.up(y) + z], 1)).flatten(2).transpose(1, 2)


class Cell(nn.Module):
    """A recurrent network of torch's ops: nn.LSTM breaks Dynamo's graphs."""

    def __init__(self):
        super().__init__()
        self.embed, self.gates, self.out = nn.Embedding(20, 8), nn.Linear(20, 48), nn.Linear(12, 20)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 12)
        all_ = []
        for step in self.embed(x).unbind(1):
            i, f, g, o = self.gates(torch.cat([step, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            all_.append(h)
        return self.out(torch.stack(all_, 1))


class Block(nn.Module):
    def __init__(self, dim, heads, norm):
        super().__init__()
        self.heads, self.before, self.between = heads, norm(dim), norm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, causal):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.before(x)).chunk(3, -1))
        with torch.fx.traceback.annotate({"kiln.region": "attn"}):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    norm = nn.LayerNorm
    causal = True

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(32, 16), nn.Embedding(16, 16)
        self.blocks = nn.ModuleList(Block(16, 4, self.norm) for _ in range(2))
        self.last, self.head = self.norm(16), nn.Linear(16, 32, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, x):
        x = self.embed(x) + self.place(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x, self.causal)
        return self.head(self.last(x))


class Llama(Decoder):
    norm = nn.RMSNorm


class Encoder(Decoder):
    causal = False


class Experts(nn.Module):
    """The two best of four experts, weighed."""

    def __init__(self):
        super().__init__()
        self.gate, self.head = nn.Linear(8, 4), nn.Linear(8, 6)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        weights, which = self.gate(x).softmax(-1).topk(2, -1)
        all_ = torch.stack([F.relu(expert(x)) for expert in self.experts], -2)
        index = which.unsqueeze(-1).expand(*which.shape, x.shape[-1])
        return self.head((all_.gather(-2, index) * weights.unsqueeze(-1)).sum(-2))


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.decay, self.out = nn.Linear(6, 8), nn.Parameter(torch.rand(8)), nn.Linear(8, 6)

    def forward(self, x):
        decay = torch.exp(-F.softplus(self.decay))
        steps = torch.arange(x.shape[1])
        kernel = decay.log().unsqueeze(-1) * (steps[:, None] - steps[None]).clamp(min=0)[None].reshape(1, -1)
        kernel = torch.tril(kernel.exp().view(8, len(steps), -1))
        return self.out(torch.einsum("dts,bsd->btd", kernel, self.into(x)))


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softplus())


def tokens(most, length):
    return lambda n: torch.randint(0, most, (n, length))


MODELS = {"mlp": (mlp, lambda n: torch.randn(n, 8)), "cnn": (CNN, lambda n: torch.randn(n, 3, 8, 8)),
          "residual": (Residual, lambda n: torch.randn(n, 4, 8, 8)), "cell": (Cell, tokens(20, 5)),
          "decoder": (Decoder, tokens(32, 9)), "encoder": (Encoder, tokens(32, 9)), "llama": (Llama, tokens(32, 9)),
          "experts": (Experts, lambda n: torch.randn(n, 5, 8)),
          "state space": (StateSpace, lambda n: torch.randn(n, 7, 6))}


def close(a, b, tolerance=1e-4):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance / 5)


def step(run, model, x, target):
    """A step's result, loss and gradients."""
    model.zero_grad()
    x = x.clone().requires_grad_() if x.is_floating_point() else x
    y = run(x)
    F.cross_entropy(y.flatten(0, -2), target).backward()
    return [y.detach(), *(p.grad.clone() for p in model.parameters()), *([x.grad] if x.is_floating_point() else [])]


def compiled(model, **keywords):
    return torch.compile(model, backend=kiln.torch.backend, fullgraph=True, **keywords)


def all_in_kiln():
    return [str(report) for report in kiln.torch.reports() if report.left] == []


@pytest.mark.parametrize("name", MODELS)
def test_eval_and_training_give_what_eager_gives(name):
    make, data = MODELS[name]
    model = make().eval()
    run = compiled(model)
    with torch.no_grad():
        x = data(3)
        close(run(x), model(x))
    model.train()
    other = copy.deepcopy(model)
    target = torch.randint(0, 4, (other(x).flatten(0, -2).shape[0],))
    model.load_state_dict(other.state_dict())
    for mine, theirs in zip(step(run, model, x, target), step(other, other, x, target), strict=True):
        close(mine, theirs, 1e-3)
    for mine, theirs in zip(model.buffers(), other.buffers()):
        close(mine, theirs)
    assert all_in_kiln(), [str(report) for report in kiln.torch.reports()]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "cell"])
def test_one_compile_serves_three_sizes(name):
    make, data = MODELS[name]
    model = make().train()
    for module in model.modules():  # whose momentum would tell the runs apart
        module.eval() if isinstance(module, nn.BatchNorm2d) else None
    run = compiled(model, dynamic=True)
    for n in (2, 3, 6):
        x = data(n)
        target = torch.randint(0, 4, (model(x).flatten(0, -2).shape[0],))
        expected = step(model, model, x, target)
        for mine, theirs in zip(step(run, model, x, target), expected, strict=True):
            close(mine, theirs, 1e-3)
    assert len(kiln.torch.reports()) == 2 and all_in_kiln(), [str(report) for report in kiln.torch.reports()]


def test_only_the_marked_attention_is_compiled():
    model = Llama().train()
    run = compiled(model, options={"mode": "marked"})
    x, target = tokens(32, 9)(2), torch.randint(0, 4, (18,))
    for mine, theirs in zip(step(run, model, x, target), step(model, model, x, target), strict=True):
        close(mine, theirs, 1e-3)
    assert len(kiln.torch.reports()) == 2  # forward and backward
    for report in kiln.torch.reports():
        regions = report.programs[0]["made"]["partition"]["regions"]
        assert {region["name"] for region in regions} == {"attn"}, report
