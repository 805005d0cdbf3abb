import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "alfworld.md"


def test_the_snippets_of_the_page_run_in_order():
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(snippets) == 4
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(snippet, names)
