"""Output layers that the frameworks' policies share."""

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
