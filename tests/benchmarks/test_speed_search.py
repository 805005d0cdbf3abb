"""The search benchmark runs, and measures recall right."""

import json

from agentic_gym.benchmarks.speed import search


def test_a_small_corpus(tmp_path, capsys):
    words = ["ash", "birch", "cedar", "elm"]
    lines = [{"id": w, "title": w, "text": f"The {w} is a tree of the woods."} for w in words]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    questions = [{"question": "the cedar tree?", "gold": ["cedar"]}, {"question": "woods of elm", "gold": ["elm", "none"]}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    arguments = ["--corpus", str(tmp_path / "c.jsonl"), "--questions", str(tmp_path / "q.jsonl"), "--repeats", "1"]
    assert search.main(arguments) == 0
    rows = {line[:34].strip(): line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert {"BM25Retriever", "SQLite FTS5", "HTTPRetriever, instant loopback"} <= {name[:31].strip() for name in rows}
    assert rows["BM25Retriever"][-2] == "0.750"
    assert search.main([*arguments, "--passages", "300", "--engines", "BM25Retriever"]) == 0
    assert "300 passages" in capsys.readouterr().out
