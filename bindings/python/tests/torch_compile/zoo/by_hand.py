"""What no package of others has, or has not by itself."""

import torch
from torch import nn
from torch.nn import functional as F


class Tagger(nn.Module):
    """Words as what two layers of a recurrent network, from either end, make of them."""

    def __init__(self, layer):
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.layers = layer(16, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 100)

    def forward(self, x):
        return self.out(self.layers(self.embed(x))[0])


class Level(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.first, self.second = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)
        self.norm, self.beside = nn.GroupNorm(4, after), nn.Conv2d(before, after, 1)

    def forward(self, x):
        return self.beside(x) + self.second(F.silu(self.norm(self.first(x))))


class UNet(nn.Module):
    """Down by pooling, attention in the middle, up by transposed convolutions and by resizing."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([Level(3, 8), Level(8, 16)])
        self.middle, self.qkv, self.out = Level(16, 32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Conv2d(16, 8, 1)])
        self.join, self.last = nn.ModuleList([Level(32, 16), Level(16, 8)]), nn.Conv2d(8, 4, 1)

    def attend(self, x):
        y = x.flatten(2).transpose(1, 2)
        q, k, v = (each.unflatten(-1, (4, 8)).transpose(1, 2) for each in self.qkv(y).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.out(y).transpose(1, 2).unflatten(2, x.shape[2:])

    def forward(self, x):
        first = self.down[0](x)
        second = self.down[1](F.max_pool2d(first, 2))
        x = self.attend(self.middle(F.avg_pool2d(second, 2)))
        x = self.join[0](torch.cat([second, self.up[0](x)], 1))
        wide = F.interpolate(self.up[1](x), size=first.shape[2:], mode="bilinear", align_corners=False)
        return self.last(self.join[1](torch.cat([first, wide], 1)))
