"""Tiny random models of many families, tokenizers and a driver of conversations, for the tests of token policies."""

from __future__ import annotations

from typing import Any

from agentic_gym.actions import Grammar
from agentic_gym.episodes import Episode, Response

GRAMMAR = Grammar(("python",))
SIZES: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128, "initializer_range": 0.3, "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0,
}  # fmt: skip
GPT: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "initializer_range": 0.3}

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("Qwen2", SIZES),
    "llama": ("Llama", SIZES),
    "qwen3": ("Qwen3", {**SIZES, "head_dim": 12}),
    "qwen2-window": ("Qwen2", {**SIZES, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}),
    "gemma2": ("Gemma2", {**SIZES, "head_dim": 8, "sliding_window": 6, "final_logit_softcapping": 4.0,
                          "attn_logit_softcapping": 4.0, "query_pre_attn_scalar": 8}),
    "mistral": ("Mistral", {**SIZES, "sliding_window": 6}),
    "granite": ("Granite", {**SIZES, "logits_scaling": 3.0}),
    "cohere": ("Cohere", {**SIZES, "logit_scale": 0.3}),
    "gpt2": ("GPT2", {**GPT, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "gpt-neox": ("GPTNeoX", {**GPT, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                             "num_attention_heads": 4, "max_position_embeddings": 128}),
}  # fmt: skip


def build(family: str, vocabulary: int, *, attention: str = "sdpa", **changes: Any) -> Any:
    """A random model of ``family`` in evaluation mode, the same every time."""
    import torch
    import transformers

    if family == "gemma2":
        attention = "eager"  # it has no other
    name, arguments = FAMILIES.get(family, (family, {}))
    config = getattr(transformers, f"{name}Config")(vocab_size=vocabulary, **{**arguments, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention).float().eval()


def byte_tokenizer(special: list[str], *, eos: str, bos: str | None = None, template: str | None = None) -> Any:
    """A byte-level tokenizer with few merges, so that characters are spread over tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(["the answer is not known", "print(6 * 7)", "system user assistant"] * 3, trainer)
    result = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos, bos_token=bos)
    result.chat_template = template
    return result


def metaspace_tokenizer() -> Any:
    """A tokenizer that marks words by a leading space and drops the first one when it decodes (as Llama 2's)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        special_tokens=["<eos>", *(f"<0x{byte:02X}>" for byte in range(256))],
        initial_alphabet=[chr(code) for code in range(33, 127)],
    )
    tokenizer.train_from_iterator(["say it with many words", "many words say it"] * 5, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


def begin(prompt: str, seed: int) -> Episode:
    """A new episode."""
    return Episode(f"t{seed}", "", prompt, seed=seed)


def record(episode: Episode, response: Response, observation: str) -> None:
    """What a rollout does with a response."""
    episode.record(response, observation, 0.0, False, False, {"action": GRAMMAR.parse(response.text)})
