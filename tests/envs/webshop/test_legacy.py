from typing import Any

import pytest

from agentic_gym.envs.webshop.legacy import WebAgentTextEnv


@pytest.fixture
def env() -> WebAgentTextEnv:
    return WebAgentTextEnv("text", num_products=100)


def test_numbered_sessions_take_their_goal(env: WebAgentTextEnv) -> None:
    state, nothing = env.reset(session=4)
    assert nothing is None
    goal = env.server.goals[4]
    assert state == f"WebShop [SEP] Instruction: [SEP] {goal['instruction_text']} [SEP] Search"
    assert env.instruction_text == env.get_instruction_text() == f"Instruction: {goal['instruction_text']}"
    assert env.server.user_sessions["4"]["goal"] == goal
    assert env.state["url"].endswith("/4")


def test_named_sessions_keep_their_goal(env: WebAgentTextEnv) -> None:
    first = env.reset(session="someone")[0]
    names = {env.reset()[0] for _ in range(20)}
    assert env.reset(session="someone")[0] == first
    assert len(names) > 10
    assert env.session == "someone"


def test_nothing_stops_after_the_purchase(env: WebAgentTextEnv) -> None:
    env.reset(session=0)
    goal = env.server.goals[0]
    env.step(f"search[{goal['name']}]")
    env.step(f"click[{goal['asin'].lower()}]")
    state, reward, done, info = env.step("click[buy now]")
    assert (done, info) == (True, None)
    assert reward > 0
    assert state.startswith("Thank you")
    assert env.server.user_sessions["0"]["verbose_info"]["r_type"] == 1.0
    assert env.get_available_actions() == {"has_search_bar": False, "clickables": []}
    assert env.step("search[lamp]")[1:] == (0.0, False, None)


def test_states_with_history() -> None:
    env = WebAgentTextEnv("url", num_products=100, num_prev_obs=2, num_prev_actions=1, session_prefix="p")
    base = "http://127.0.0.1:3000"
    assert env.reset(session=1)[0] == f"{base}/p1"
    state = env.step("search[a]")[0]
    assert state == f"{base}/p1 [SEP] search[a] [SEP] {base}/search_results/p1/a/1"
    state = env.step("click[next >]")[0]
    assert state == (
        f"{base}/p1 [SEP] {base}/search_results/p1/a/1 [SEP] click[next >] [SEP] {base}/search_results/p1/a/2"
    )


def test_html_is_the_default_and_modes_are_checked() -> None:
    assert WebAgentTextEnv(num_products=100).observation.startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match="got 'image'"):
        WebAgentTextEnv("image", num_products=100)


def test_an_instruction_can_be_replaced_for_the_reader(env: WebAgentTextEnv) -> None:
    env.reset(session=0, instruction_text="buy anything")
    assert env.instruction_text == "buy anything"


def test_the_recorded_episodes(official_data: Any, golden: Any) -> None:
    env = WebAgentTextEnv("text_rich", file_path=official_data)
    for row in golden("golden_trajectories.jsonl.gz"):
        if row["action"] is None:
            state, reward, done = env.reset(session=row["goal"])[0], 0.0, False
        else:
            state, reward, done, _ = env.step(row["action"])
        assert (state, reward, done) == (row["text_rich"], row["reward"], row["done"])
        assert env.get_available_actions() == row["avail"]
        assert env.state["url"] == row["url"]
