"""Ways to pre-train a small encoder, and what all of them share."""

from typing import Any, NamedTuple

ENCODER: dict[str, Any] = {
    "kind": "new",
    "vocab_size": 2048,
    "config": {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "max_position_embeddings": 64,
    },
}
SHARED: dict[str, Any] = {
    "encoder": ENCODER,
    "max_length": 32,
    "batch_size": 32,
    "mini_batch_size": 32,
    "validations": 1,
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
}
COMPARED: dict[str, dict[str, Any]] = {
    "MLM": {"decoder": None},
    "SEED, 3 layers, window 2": {"decoder": {"kind": "weak", "layers": 3, "window": 2}},
}
GRID: dict[str, dict[str, Any]] = {
    "SEED, 3 layers, window 2, texts joined": COMPARED["SEED, 3 layers, window 2"] | {"one_text": False},
    "SEED, 1 layer, window 2": {"decoder": {"kind": "weak", "layers": 1, "window": 2}},
    "SEED, 1 layer, window 8": {"decoder": {"kind": "weak", "layers": 1, "window": 8}},
    "SEED, 3 layers, all": {"decoder": {"kind": "weak", "layers": 3, "window": None}},
    "SEED, 5 layers, all": {"decoder": {"kind": "weak", "layers": 5, "window": None}},
    "RetroMAE": {"decoder": {"kind": "retromae"}, "mlm_probability": 0.3},
}
KINDS = COMPARED | GRID


class Setting(NamedTuple):
    """One of ``KINDS`` at a learning rate."""

    kind: str
    rate: float

    def params(self, steps: int) -> dict[str, Any]:
        """The group ``pretrain.NAME``."""
        return SHARED | {"learning_rate": self.rate, "steps": steps} | KINDS[self.kind]
