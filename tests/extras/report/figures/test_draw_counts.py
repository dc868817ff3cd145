"""Published counts as they are drawn: bars for what is public, and only a word for what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from figure_samples import axes, drawn, labels, table, texts

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.report.figures import MAX_ROWS, draw_counts


def bars(panel):
    return [
        (bar.get_y() + bar.get_height() / 2, bar.get_width()) for container in panel.containers for bar in container
    ]


def ticks(panel):
    return [label.get_text() for label in panel.get_yticklabels()]


def test_bars_are_the_counts_in_the_published_order():
    panel = axes()
    draw_counts(table([82, 103, 60]), 50, panel)
    assert [width for _, width in bars(panel)] == [82, 103, 60]
    assert [round(row, 9) for row, _ in bars(panel)] == [0, 1, 2]
    assert ticks(panel) == ["cell 0", "cell 1", "cell 2"]
    assert panel.get_ylim()[0] > panel.get_ylim()[1]  # the first one is at the top
    assert list(drawn(panel, "threshold").get_xdata()) == [50, 50]
    assert {"82", "103", "60", "k = 50"} == set(texts(panel))


@pytest.mark.parametrize("width", [4.0, 8.0])
def test_labels_keep_every_key(width):
    panel = axes(width=width)
    keys = (("Trondheim municipality, the northern districts", "female"), ("Oslo", "x" * 60), ("a" * 40,) * 3)
    draw_counts(table([82, 103, 60], keys=keys), 50, panel)
    first, second, third = ticks(panel)
    assert first.startswith("Tro")
    assert first.endswith("… / female")
    assert second.startswith("Oslo / xxx")
    assert third.count("aaa… / ") == 2
    assert max(map(len, (first, second, third))) <= (18 if width < 5 else 34)


@pytest.mark.parametrize(("width", "known"), [(8.0, "27 follows exactly"), (4.0, "27\nfollows exactly")])
def test_more_is_said_of_a_suppressed_cell_where_more_is_known(width, known):
    panel = axes(width=width)
    draw_counts(table([None, 1000, None]), 50, panel, words=["suppressed: 27 follows exactly", "", "suppressed"])
    assert [text for text in texts(panel) if "suppressed" in text] == [f"suppressed: {known}", "suppressed"]


@pytest.mark.parametrize("k", [2, 50, 900, None])
def test_a_suppressed_cell_has_a_word_and_no_length(k):
    panel = axes()
    draw_counts(table([None, 1000, None, 950]), k, panel)
    assert [width for _, width in bars(panel)] == [1000, 950]
    words = [text for text in panel.texts if text.get_text() == "suppressed"]
    assert len(words) == 2
    assert len({(word.xy[0], word.get_position()) for word in words}) == 1  # in the same place, whatever they are
    assert words[0].xy[0] in (0.0, k)
    assert not [patch for patch in panel.patches if patch.get_width() == 0]


def test_suppressed_tables_do_not_show_how_much():
    pictures = []
    for _ in range(2):
        panel = axes()
        draw_counts(table([None, None]), 20, panel)
        pictures.append((panel.get_xlim(), texts(panel), bars(panel)))
    assert pictures[0] == pictures[1]
    assert pictures[0][2] == []


def test_a_word_is_not_crossed_by_the_threshold():
    for k in (1, 10, 50, 200, 500, 950):
        panel = axes()
        draw_counts(table([None, 1000]), k, panel)
        (word,) = [text for text in panel.texts if text.get_text() == "suppressed"]
        box = word.get_window_extent()
        assert not box.x0 < panel.transData.transform((k, 0))[0] < box.x1, k


def test_negative_counts_of_noised_tables_have_bars_to_the_left():
    panel = axes()
    draw_counts(table([-7, 30]), None, panel)
    assert [width for _, width in bars(panel)] == [-7, 30]
    assert panel.get_xlim()[0] < -7
    assert "zero" in labels(panel)
    assert "threshold" not in labels(panel)
    assert "−7" in texts(panel)


def test_what_is_left_out_is_said():
    panel = axes()
    draw_counts(table(range(100, 140), more=2), 50, panel)
    assert len(bars(panel)) == MAX_ROWS
    assert "12 more rows are not drawn" in panel.get_xlabel()
    panel = axes()
    draw_counts(table([5]), None, panel)
    assert "more" not in panel.get_xlabel()


def test_long_names_are_shortened_and_columns_joined():
    panel = axes()
    draw_counts(table([5, 6], keys=(("a" * 80, "b"), ("JFK", "AA")), columns=("origin", "carrier")), None, panel)
    assert ticks(panel)[1] == "JFK / AA"
    assert len(ticks(panel)[0]) < 40
    assert ticks(panel)[0].endswith("… / b")
    assert panel.get_title(loc="left") == "origin / carrier"


def test_a_count_and_an_empty_table_are_drawn():
    panel = axes()
    draw_counts(table([1523], keys=((),), columns=()), 20, panel)
    assert ticks(panel) == ["count"]
    assert "1,523" in texts(panel)
    panel = axes()
    draw_counts(table([]), 20, panel)
    assert "no cell is published" in texts(panel)


def test_keys_and_counts_must_fit():
    with pytest.raises(ArgumentError, match="one count for each key"):
        draw_counts(table([1, 2], keys=(("a",),)), None, axes())


@pytest.mark.parametrize(("count", "ends"), [(12, (9, 15)), (29, (26, 29)), (-5, (0, 0)), (40, (29, 29)), (1, (0, 4))])
def test_a_noised_count_is_hollow_with_a_line_where_the_counted_number_is(count, ends):
    panel = axes()
    shown = replace(table([42, count]), exact=(True, False))
    draw_counts(shown, 30, panel, margin=3)
    solid, hollow = panel.containers
    assert [bar.get_width() for bar in solid] == [42]
    assert [bar.get_width() for bar in hollow] == [count]
    assert all(bar.get_facecolor()[3] == 0.0 for bar in hollow)
    assert {"42", f"≈ {str(count).replace('-', '−')}"} < set(texts(panel))
    (line,) = [line for line in panel.lines if line.get_marker() == "|"]
    assert tuple(line.get_xdata()) == ends
