import random

from agentic_gym.envs.webshop.human_texts import write_instruction


def test_instructions_vary_and_name_the_wishes() -> None:
    texts = {
        write_instruction(random.Random(seed), "bars", ["nut free"], {"size": "6 ct", "flavor name": "oat"})
        for seed in range(60)
    }
    assert len(texts) > 40
    assert all(text == text.lower() and "bars" in text and "6 ct" in text for text in texts)
    assert any("nut free" not in text or "oat" in text for text in texts)
