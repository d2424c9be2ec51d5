"""Fourier transforms; complex numbers are pairs."""

import torch

from peers import peer


@peer("rfft", "torch.fft.rfft")
def rfft(c):
    x = c.tensor(0)
    if not x.numel():
        return x.new_zeros(*x.shape[:-1], x.shape[-1] // 2 + 1, 2)
    return torch.view_as_real(torch.fft.rfft(x, norm=c.norm))


@peer("irfft", "torch.fft.irfft")
def irfft(c):
    x = c.tensor(0)
    n = c.n if c.n >= 0 else 2 * (x.shape[-2] - 1)
    if not x.numel():
        return x.new_zeros(*x.shape[:-2], n)
    return torch.fft.irfft(torch.view_as_complex(x), n, norm=c.norm)


@peer("stft", "torch.stft")
def stft(c):
    x, *window = c.tensors()
    y = torch.stft(x, c.n_fft, c.hop, window=window[0] if window else x.new_ones(c.n_fft), center=c.center,
                   pad_mode="reflect", normalized=c.norm == "ortho", onesided=c.onesided, return_complex=True)
    return torch.view_as_real(y / c.n_fft if c.norm == "forward" else y)
