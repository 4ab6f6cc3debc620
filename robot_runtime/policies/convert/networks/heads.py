"""Recurrent and output layers that the frameworks' policies share."""

from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override


class LinearHead(nn.Module):
    """A linear layer under the name that checkpoints give it."""

    def __init__(self, name: str, size: int, out: int) -> None:
        super().__init__()
        self._name = name
        self.add_module(name, nn.Linear(size, out))

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.get_submodule(self._name)(x)  # type: ignore[no-any-return]


class StateEncoder(nn.Module):
    """The recurrent layers; where the mask is false, the state is zero."""

    def __init__(self, size: int, hidden: int, kind: Literal["GRU", "LSTM"], layers: int) -> None:
        super().__init__()
        self.is_lstm = kind == "LSTM"
        self.rnn = (nn.LSTM if self.is_lstm else nn.GRU)(size, hidden, layers)

    @override
    def forward(self, x: Tensor, state: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, size), state (layers, N, hidden), mask (N, 1) bool to features (N, hidden) and the next state."""
        state = torch.where(mask.view(1, -1, 1), state, torch.zeros_like(state))
        if self.is_lstm:
            h, c = torch.chunk(state, 2, 0)
            out, (h, c) = self.rnn(x.unsqueeze(0), (h.contiguous(), c.contiguous()))
            return out.squeeze(0), torch.cat([h, c], 0)
        out, state = self.rnn(x.unsqueeze(0), state.contiguous())
        return out.squeeze(0), state
