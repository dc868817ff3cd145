"""A page as a tree that tests can ask, from the standard library's parser; what is not well-formed is an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "read"]

VOID = {"meta", "br", "hr", "img", "input", "link", "wbr"}


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str | None]
    inside: list[Element | str] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[Element]:
        """Yield the elements below with one of these tags, every element without any, in the document's order."""
        for inner in self.inside:
            if isinstance(inner, Element):
                if not tags or inner.tag in tags:
                    yield inner
                yield from inner.all(*tags)

    def only(self, tag: str, **attributes: str) -> Element:
        elements = [element for element in self.all(tag) if attributes.items() <= element.attributes.items()]
        assert len(elements) == 1, (tag, attributes, len(elements))
        return elements[0]

    @property
    def text(self) -> str:
        """The text below, as a reader sees it: white space is one blank."""
        return " ".join("".join(self._texts()).split())

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())

    def _texts(self) -> Iterator[str]:
        for inner in self.inside:
            if isinstance(inner, str):
                yield inner
            else:
                yield from inner._texts()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        element = Element(tag, dict(attrs))
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def read(page: str) -> Element:
    """Return the page's tree."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root], f"<{reader.open[-1].tag}> is not closed"
    return reader.root
