"""Read a page back into its text nodes, by the rules of the original's HTML parser."""

from html.parser import HTMLParser

ASCII_BLANKS = " \n\t\f\r"
HIDDEN = ("style", "script", "head", "title", "meta")


class TextNodes(HTMLParser):
    """Collects the visible text nodes of a page: `nodes`."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.nodes: list[str] = []
        self._tags: list[str] = []
        self._text = ""
        self.feed(html)
        self.close()
        self._flush()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._flush()
        if tag not in ("meta", "link", "br", "input", "img"):
            self._tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._flush()
        assert self._tags.pop() == tag

    def handle_data(self, data: str) -> None:
        self._text += data

    def _flush(self) -> None:
        text, self._text = self._text, ""
        if not text or (self._tags and self._tags[-1] in HIDDEN):
            return
        if not text.strip(ASCII_BLANKS):
            text = "\n" if "\n" in text else " "
        if text != "\n" and self._tags:
            self.nodes.append(text)


def text_nodes(html: str) -> list[str]:
    """The visible text nodes of a page, not stripped."""
    return TextNodes(html).nodes
