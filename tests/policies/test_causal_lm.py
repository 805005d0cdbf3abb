"""The two halves of a model, and loading one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.policies.causal_lm import CausalLM, load_model_and_tokenizer
from tests.policies.tiny_models import FAMILIES, build


@pytest.mark.parametrize("family", FAMILIES)
def test_head_after_body_is_the_model(family):
    torch.set_num_threads(1)
    model = build(family, 60)
    lm = CausalLM(model)
    ids = torch.arange(24).reshape(2, 12) % 60
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        torch.testing.assert_close(lm.logits(lm.hidden(ids)), expected, atol=1e-4, rtol=1e-4)
        # Padding on the right is hidden by causality.
        padded = lm.hidden(torch.cat([ids, torch.full((2, 5), 7)], dim=1))
        torch.testing.assert_close(lm.logits(padded[:, :12]), expected, atol=1e-4, rtol=1e-4)
    assert lm.max_length == 128


def test_a_model_without_a_head_is_refused():
    config = transformers.Qwen2Config(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                                      num_key_value_heads=2, intermediate_size=8)  # fmt: skip
    with pytest.raises(ValueError, match="Qwen2Model has no language-model head"):
        CausalLM(transformers.Qwen2Model(config))


def test_reading_in_parts_is_checked_once(monkeypatch):
    lm = CausalLM(build("qwen2", 60))
    lm.verify()
    monkeypatch.setattr(lm, "hidden", None)
    lm.verify()


def test_a_wrong_mask_does_not_pass_the_check(monkeypatch):
    lm = CausalLM(build("qwen2", 60))
    monkeypatch.setattr(lm, "_masks", lambda visible, _: torch.ones_like(visible))
    with pytest.raises(ValueError, match="reading in parts gives other logits"):
        lm.verify()


def test_half_precision_passes_the_check():
    for family in FAMILIES:
        CausalLM(build(family, 60).bfloat16()).verify()


def test_attention_without_masks_is_named():
    model = build("qwen2", 60)
    model.config._attn_implementation = "flash_attention_2"
    lm = CausalLM(model)
    with pytest.raises(ValueError, match=r"attn_implementation='sdpa'"):
        lm._form(torch.ones(1, 1, 1, 1, dtype=torch.bool))


def test_saved_models_and_tokenizers_load_as_they_were(tmp_path):
    tokenizer = tiny.build_tokenizer()
    model = tiny.build_model(tokenizer, width=32, layers=1)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, spoken = load_model_and_tokenizer(tmp_path, dtype="float32", device="cpu")
    assert all(torch.equal(v, loaded.state_dict()[k]) for k, v in model.state_dict().items())
    text = "Q: 12+34=?A: <think>Better compute.</think><python>print(12+34)</python>"
    assert spoken.encode(text) == tokenizer.encode(text)
    assert load_model_and_tokenizer(tmp_path, dtype="bfloat16", device="cpu")[0].dtype == torch.bfloat16


@pytest.mark.parametrize("source", ["/nowhere/model", "./nowhere", "nowhere.gguf", "a/b/c"])
def test_a_path_without_a_model_is_named(source):
    with pytest.raises((FileNotFoundError, OSError), match=r"nowhere|a/b/c"):
        load_model_and_tokenizer(source)
