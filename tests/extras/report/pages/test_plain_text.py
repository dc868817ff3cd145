from __future__ import annotations

import re

import pandas as pd
import pytest
from example_report import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pkdp_pipeline.model.period import in_markdown, joined, key_text, printable, table_line

PARTS = st.sampled_from(
    [*HOSTILE, "`", "*", "_", "~~", "[a](b)", "![", "<b>", "&lt;", "|", "\\", "http://", "www.x.org"]
)
TEXT = st.one_of(st.text(max_size=30), st.lists(PARTS, max_size=4).map("".join))


def rendered(markdown: str) -> list:
    """Return the tokens of a page, with tables and strikethrough; addresses are looked for apart."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)


@given(TEXT)
def test_a_value_is_one_line_without_anything_that_steers(text):
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@given(TEXT)
def test_a_cell_of_markdown_shows_its_text_and_nothing_else(text):
    shown = key_text(text)
    tokens = rendered(
        f"{table_line(['name', 'count'])}\n{table_line(['---', '---:'])}\n{table_line([in_markdown(shown), '5'])}"
    )
    cells = [token for token, before in zip(tokens[1:], tokens, strict=False) if before.type == "td_open"]
    assert len(cells) == 2
    kinds = {child.type for child in cells[0].children}
    assert kinds <= {"text", "text_special"}
    assert "".join(child.content for child in cells[0].children) == shown.strip()


@given(TEXT)
def test_a_paragraph_holds_no_link_tag_or_emphasis(text):
    tokens = rendered(f"About {in_markdown(printable(text))}, and so on.")
    (inline,) = (token for token in tokens if token.type == "inline")
    assert {child.type for child in inline.children} <= {"text", "text_special"}


@given(TEXT)
def test_no_address_is_made_a_link_of(text):
    assert not re.search(r"[A-Za-z]://|www\.|(?<!\\)@", in_markdown(text), re.IGNORECASE)


def test_a_key_is_never_empty():
    assert [key_text(value) for value in ("", None, float("nan"), pd.NA, pd.NaT)] == ["(empty)"] + ["(missing)"] * 4
    assert [key_text(value) for value in (0, False, 1.5)] == ["0", "False", "1.5"]


KEY_TEXT = st.one_of(
    TEXT,
    st.sampled_from(["", " ", "(missing)", "(empty)", '"(empty)"', "\n", "\\n", '"', "a /", "/ a", "a / b", "a  b"]),
    st.text(alphabet='a /"\\ \nx20', max_size=8),
)


@given(st.tuples(KEY_TEXT, KEY_TEXT), st.tuples(KEY_TEXT, KEY_TEXT))
def test_different_texts_look_different(first, second):
    assert (key_text(first[0]) == key_text(second[0])) == (first[0] == second[0])
    assert (joined([*map(key_text, first)]) == joined([*map(key_text, second)])) == (first == second)


@given(KEY_TEXT)
def test_a_key_has_no_blanks_that_a_page_would_drop_and_is_not_taken_for_a_missing_one(text):
    assert " ".join(key_text(text).split()) == key_text(text) != "(missing)"
    assert key_text(text, quoted=True)[0] == key_text(text, quoted=True)[-1] == '"'


def test_an_ordinary_name_stays_as_it_is():
    for name in ("New York, NY", "O'Hare", 'the "old" town', "a/b", "50 % (about)", "Zürich", "東京", "<b>"):
        assert key_text(name) == joined([key_text(name)]) == name
    assert joined(["a", "b/c"]) == "a / b/c"
    assert [key_text(name) for name in (" ", "\\n", "\n", "(missing)")] == ['" "', "\\\\n", "\\n", '"(missing)"']


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_name_keeps_what_reverses_or_rings(name):
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", printable(name))
