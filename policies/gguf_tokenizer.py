"""The tokenizer inside a GGUF file as the two files that ``transformers`` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentic_gym.policies.gguf_file import GGUFFile

__all__ = ["write_json", "write_tokenizer"]

_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5  # token types of llama.cpp

# How text is cut into words before the merges, by llama.cpp's names (``tokenizer.ggml.pre``).
_PRE_TOKENIZERS = ("gpt-2", "qwen2", "smollm")
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def write_tokenizer(file: GGUFFile, folder: Path, *, max_length: int) -> None:
    """Write tokenizer.json and tokenizer_config.json (special tokens, chat template) into ``folder``.

    Raises GGUFError for anything but byte-level BPE with a known pre-tokenizer, and for a damaged vocabulary.
    """
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, processors
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("GGUF tokenizers need an extra: pip install 'agentic-gym[train]'") from error
    kind, pre = file.get("tokenizer.ggml.model", str), file.get("tokenizer.ggml.pre", str, "gpt-2")
    if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise file.error(
            f"tokenizer {kind!r} with pre-tokenizer {pre!r} is not supported; 'gpt2' with "
            f"{', '.join(_PRE_TOKENIZERS)} is"
        )
    tokens: list[str] = file.get("tokenizer.ggml.tokens", list)
    types: list[int] = file.get("tokenizer.ggml.token_type", list, [_NORMAL] * len(tokens))
    merges: list[str] = file.get("tokenizer.ggml.merges", list)
    if len(types) != len(tokens):
        raise file.error(f"it has {len(tokens)} tokens but {len(types)} token types")
    # Unused entries only pad the embedding.
    vocab = {token: i for i, (token, type_) in enumerate(zip(tokens, types)) if type_ != _UNUSED}
    try:
        pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs))
    except Exception as error:  # tokenizers raises plain Exception, for example for a merge outside the vocabulary
        raise file.error(f"its tokenizer is damaged ({error})") from error
    tokenizer.normalizer, tokenizer.pre_tokenizer = _text_rules(pre)
    tokenizer.decoder = decoders.ByteLevel()
    for i, (token, type_) in enumerate(zip(tokens, types)):
        if type_ in (_CONTROL, _USER_DEFINED):
            if vocab[token] != i:
                raise file.error(f"its special token {token!r:.80} occurs twice")
            tokenizer.add_tokens([AddedToken(token, special=type_ == _CONTROL, normalized=False)])

    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if f"tokenizer.ggml.{key}_token_id" in file.metadata:
            index: int = file.get(f"tokenizer.ggml.{key}_token_id", int)
            if index not in range(len(tokens)):
                raise file.error(f"its {name} token {index} is outside the vocabulary of {len(tokens)}")
            config[f"{name}_token"] = tokens[index]
    if file.get("tokenizer.ggml.add_bos_token", bool, False):
        bos = config.get("bos_token")
        if bos is None:
            raise file.error("it wants a first token but names none")
        tokenizer.post_processor = processors.TemplateProcessing(single=[bos, "$A"], special_tokens=[(bos, vocab[bos])])
    if "tokenizer.chat_template" in file.metadata:
        config["chat_template"] = file.get("tokenizer.chat_template", str)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)


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


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write readable JSON in UTF-8."""
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
