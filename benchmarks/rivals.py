"""What people use today, written as they would write it: the slow sides of the comparisons."""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr


def sentence_transformer(folder: Path, max_length: int):
    """The model in sentence-transformers, on the CPU."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = max_length
    return model


class Onnx:
    """A model's last layer in ONNX Runtime: float32, or with int8 weights quantised dynamically.

    Each type gets the graph that is faster there: the export of torch's fused attention in float32, of plain
    attention in int8.
    """

    def __init__(self, model: Path, work: Path, int8: bool, threads: int):
        import onnxruntime

        path = work / "float32.onnx"
        export(model, path, "eager" if int8 else "sdpa")
        if int8:
            path = quantised(path, work / "int8.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def encode(self, ids: Sequence[Sequence[int]], size: int = 32) -> np.ndarray:
        """Mean of all tokens in the last layer, [n, d]: batches of `size`, sorted by length, padded and masked."""
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        rows = [None] * len(ids)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            tokens = np.zeros((len(batch), len(ids[batch[0]])), dtype=np.int64)
            mask = np.zeros_like(tokens)
            for row, i in enumerate(batch):
                tokens[row, : len(ids[i])] = ids[i]
                mask[row, : len(ids[i])] = 1
            (hidden,) = self.session.run(None, {"input_ids": tokens, "attention_mask": mask})
            weights = mask[..., None].astype(np.float32)
            for i, vector in zip(batch, (hidden * weights).sum(1) / weights.sum(1), strict=True):
                rows[i] = vector
        return np.stack(rows)


class _LastLayer(torch.nn.Module):
    def __init__(self, network: torch.nn.Module):
        super().__init__()
        self.network = network

    def forward(self, input_ids, attention_mask):
        return self.network(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export(model: Path, path: Path, attention: str) -> None:
    """Write the model's last layer as an ONNX graph with free batch and length."""
    from transformers import AutoModel

    network = _LastLayer(AutoModel.from_pretrained(model, attn_implementation=attention)).eval()
    ids = torch.ones(2, 8, dtype=torch.long)
    free = {0: "batch", 1: "length"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (ids, ids),
            str(path),
            input_names=["input_ids", "attention_mask"],
            output_names=["hidden"],
            dynamic_axes={"input_ids": free, "attention_mask": free, "hidden": free},
            dynamo=False,
        )


def quantised(source: Path, path: Path) -> Path:
    """The graph with int8 weights, activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.disable(logging.WARNING)
    try:
        quantize_dynamic(source, path, weight_type=QuantType.QInt8)
    finally:
        logging.disable(logging.NOTSET)
    return path


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine of row i with row i."""
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def spearman(a: np.ndarray, b: np.ndarray, gold: np.ndarray) -> float:
    """One score as the papers' scripts compute it."""
    return 100 * float(spearmanr(cosines(a, b), gold).statistic)


def su_whitening(x: np.ndarray, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and map of Su et al. 2021, Algorithm 1: the SVD of the covariance."""
    u, s, _ = np.linalg.svd(np.cov(x.T))
    return x.mean(axis=0), (u / np.sqrt(s))[:, :k]


def pooled_again(hidden: Sequence[np.ndarray], mask: np.ndarray, layers: Sequence[int]) -> np.ndarray:
    """The papers' procedure for one setting, from hidden states [n, t, d] that are stored: average, then pool."""
    average = sum(hidden[layer] for layer in layers) / len(layers)
    return (average * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
