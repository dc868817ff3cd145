"""The page in a real browser: quiet, alone, accessible, as wide as the window, usable by keyboard and on paper."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pages import OFFICERS, REPORTS, drawn, page
from thorough import one_in, thinned

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("report")]

WIDTHS = (320, 360, 768, 1024, 1440, 2200)
every_report = pytest.mark.parametrize("name", REPORTS)
some_reports = pytest.mark.parametrize("name", one_in(2, REPORTS))
every_scheme = pytest.mark.parametrize("scheme", ["light", "dark"])


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-background-networking"]
        )
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Return how to open a report; whatever the browser complains about or asks for fails the test."""
    heard: list[str] = []

    @contextmanager
    def open_page(name: str, *, width: int = 1440, scheme: str = "light") -> Iterator:
        file = tmp_path / "report.html"
        file.write_text(page(name), encoding="utf-8")
        # axe is put into the page by the test, which the page's own policy would not allow.
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True, service_workers="block"
        )
        shown = context.new_page()
        shown.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        shown.on("pageerror", lambda error: heard.append(f"error: {error}"))
        shown.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        shown.on("request", lambda request: request.url == file.as_uri() or heard.append(f"request: {request.url}"))
        shown.goto(file.as_uri())
        yield shown
        context.close()

    yield open_page
    assert heard == []


@every_report
def test_a_page_opens_without_a_complaint_or_a_request(browser, tmp_path, name):
    """Without any leave to bypass the page's own policy."""
    file = tmp_path / "report.html"
    file.write_text(page(name), encoding="utf-8")
    heard = []
    with browser.new_context() as context:
        shown = context.new_page()
        shown.on("console", lambda message: heard.append(message.text))
        shown.on("pageerror", lambda error: heard.append(str(error)))
        shown.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
        shown.on("request", lambda request: heard.append(request.url))
        shown.goto(file.as_uri(), wait_until="networkidle")
        for details in shown.locator("summary").all():
            details.click()
        shown.mouse.move(200, 400)
        assert shown.title().startswith(" ".join(REPORTS[name]().title.split()))
        # The style sheet is in force.
        assert shown.evaluate("getComputedStyle(document.querySelector('.wide > svg')).display") == "block"
    assert heard == [file.as_uri()]


def test_the_policy_of_a_page_stops_scripts_and_requests(browser, tmp_path):
    file = tmp_path / "report.html"
    worse = (
        "<img src='http://127.0.0.1:9/x.png' onerror='document.title = 1'><script>document.title = 2</script></main>"
    )
    file.write_text(page("day").replace("</main>", worse), encoding="utf-8")
    requested = []
    with browser.new_context() as context:
        shown = context.new_page()
        shown.on("requestfinished", lambda request: requested.append(request.url))
        shown.goto(file.as_uri())
        assert shown.title().startswith("flights")
    assert requested == [file.as_uri()]


@thinned(2)
@every_report
def test_nothing_is_wider_than_the_window(opened, name):
    with opened(name) as shown:
        for opening in (False, True):
            shown.evaluate("open => document.querySelectorAll('details').forEach(one => one.open = open)", opening)
            for scheme, width in [
                ("dark", 360),
                ("dark", 768),
                ("dark", 1440),
                *(("light", width) for width in WIDTHS),
            ]:
                shown.emulate_media(color_scheme=scheme)
                shown.set_viewport_size({"width": width, "height": 900})
                more = shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert more <= 0, (scheme, width)
                beyond = shown.evaluate(
                    """() => [...document.querySelectorAll('main *')].filter(one =>
                        !one.closest('svg') && !one.parentElement.closest('.scroll') &&
                        one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1
                    ).map(one => one.outerHTML.slice(0, 80))"""
                )
                assert beyond == [], (scheme, width)


@thinned(2)
@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    one_in(
        2,
        [
            ("auditor", "dark", 768),
            ("day", "light", 1440),
            ("hostile", "light", 360),
            ("day", "dark", 360),
            ("noisy", "dark", 1440),
            ("noisy", "light", 1440),
            ("officer", "light", 1440),
            ("officer", "dark", 390),
            ("year", "light", 360),
        ],
    ),
)
def test_axe_finds_nothing(opened, name, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    with opened(name, scheme=scheme, width=width) as shown:
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        result = Axe().run(shown)
        wrong = [
            f"{violation['impact']}: {violation['id']}: {violation['nodes'][0]['html']}"
            for violation in result.response["violations"]
        ]
        assert wrong == []
        assert len(result.response["passes"]) > 20


@every_scheme
def test_texts_in_pictures_have_contrast(opened, scheme):
    """Axe does not look into SVG."""
    with opened("noisy", scheme=scheme) as shown:
        ratios = shown.evaluate(
            """() => {
                const light = text => {
                    const part = text.match(/[0-9.]+/g).slice(0, 3).map(Number).map(one => one / 255)
                        .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
                    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
                };
                const paper = light(getComputedStyle(document.body).backgroundColor);
                return [...document.querySelectorAll('svg text')].filter(one => one.checkVisibility()).map(one => {
                    const ink = light(getComputedStyle(one).fill);
                    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
                });
            }"""
        )
        assert len(ratios) > 50
        assert min(ratios) >= 4.5


def test_light_and_dark_are_different_pages(opened):
    papers = set()
    for scheme in ("light", "dark"):
        with opened("day", scheme=scheme) as shown:
            papers.add(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2


def test_everything_can_be_reached_and_opened_by_keyboard(opened):
    with opened("noisy") as shown:
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.className") == "skip"
        assert shown.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        shown.keyboard.press("Enter")
        assert shown.evaluate("document.activeElement.id") == "main"
    with opened("noisy") as shown:
        wanted = shown.evaluate(
            "[...document.querySelectorAll('a, summary, [tabindex=\"0\"]')].filter(one => one.checkVisibility()).length"
        )
        reached = []
        for _ in range(wanted):
            shown.keyboard.press("Tab")
            reached.append(
                shown.evaluate(
                    """() => {
                        const one = document.activeElement, style = getComputedStyle(one);
                        one.dataset.seen = '1';
                        return [one.tagName, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2];
                    }"""
                )
            )
        assert shown.evaluate("document.querySelectorAll('[data-seen]').length") == wanted
        assert all(is_seen for _, is_seen in reached)
        assert {tag for tag, _ in reached} == {"A", "SUMMARY", "DIV"}
        first = shown.locator("summary").first
        first.focus()
        shown.keyboard.press("Enter")
        assert shown.locator("details").first.evaluate("one => one.open")


def test_a_wide_table_scrolls_in_its_own_region(opened):
    with opened("hostile", width=360) as shown:
        region = shown.locator(".scroll").first
        assert region.evaluate("one => one.scrollWidth > one.clientWidth")
        region.focus()
        shown.keyboard.press("ArrowRight")
        shown.wait_for_function("document.querySelector('.scroll').scrollLeft > 0")


@thinned(2)
@some_reports
def test_tables_and_curves_are_there(opened, name):
    report = REPORTS[name]()
    with opened(name) as shown:
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for width in (360, 1440):
            shown.set_viewport_size({"width": width, "height": 900})
            for number, release in enumerate(report.releases, start=1):
                lines = shown.locator(f"table:has(#numbers-{number}) tbody tr")
                assert lines.count() == min(30, len(release.table.counts))
                assert all(line.is_visible() for line in lines.all()[:5])
            curves = list(drawn(report))
            for number in curves:
                lines = shown.locator(f"table:has(#guarantee-{number}) tbody tr")
                assert lines.count() == len(report.promises[number - 1].curve.epsilons)
            figures = shown.locator("figure:not(.panels)").count()
            pictures = shown.locator("figure:not(.panels) svg:visible")
            assert pictures.count() == figures
            assert figures >= len(curves) + 1
            for svg in shown.locator(".panel svg").all():
                box = svg.bounding_box()
                assert box["width"] > 120
                assert 50 < box["height"] < 80
            for svg in pictures.all():
                box = svg.bounding_box()
                assert box["width"] > 250
                assert box["height"] > 80
                assert svg.locator("path, use").count() >= 2
            assert shown.locator("figure:has(svg[aria-labelledby^=guarantee]) svg:visible").count() >= len(curves)


@thinned(2)
@every_report
def test_letters_in_pictures_can_be_read(opened, name):
    with opened(name) as shown:
        for width in (320, 360, 768, 1440):
            shown.set_viewport_size({"width": width, "height": 900})
            heights = shown.evaluate(
                """[...document.querySelectorAll('svg text')].filter(one => one.checkVisibility()).map(one => {
                    const matrix = one.getScreenCTM();
                    return parseFloat(getComputedStyle(one).fontSize) * Math.hypot(matrix.b, matrix.d);
                })"""
            )
            assert min(heights) >= 9.0, width


def test_paper_is_light_and_has_promises_and_what_is_folded_out(opened):
    with opened("noisy", scheme="dark") as shown:
        shown.emulate_media(media="print", color_scheme="dark")
        assert shown.evaluate("getComputedStyle(document.body).color") == "rgb(23, 33, 43)"
        assert not shown.locator("nav").is_visible()
        folded = shown.locator("details:not(.printed) table:not(.screen)")
        for opens in (False, True):
            shown.evaluate("open => document.querySelectorAll('details').forEach(one => one.open = open)", opens)
            assert {lines.is_visible() for lines in folded.all()} == {opens}
            assert {promise.is_visible() for promise in shown.locator("details.printed p").all()} == {True}
        # A4 without its margins.
        shown.set_viewport_size({"width": 657, "height": 980})
        assert shown.locator("figure .wide svg").first.is_visible()
        assert not shown.locator("figure .narrow svg").first.is_visible()


@thinned(2)
@some_reports
def test_a_page_can_be_printed(opened, name, tmp_path):
    with opened(name) as shown:
        paper = Path(tmp_path, "report.pdf")
        shown.pdf(path=paper, prefer_css_page_size=True, tagged=True, outline=True)
        content = paper.read_bytes()
        assert content.startswith(b"%PDF")
        assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page/") + content.count(b"/Type /Page ") >= 4


@thinned(2)
@pytest.mark.parametrize("name", one_in(2, OFFICERS))
def test_for_the_officer_there_are_two_sheets_of_paper(opened, name, tmp_path):
    with opened(name) as shown:
        paper = Path(tmp_path, "officer.pdf")
        shown.pdf(path=paper, prefer_css_page_size=True, tagged=True)
        assert len(re.findall(rb"/Type ?/Page[^s]", paper.read_bytes())) == 2
        shown.emulate_media(media="print")
        assert shown.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert shown.locator("nav, a, svg").count() == 0
        for width in (320, 390, 1440):
            shown.set_viewport_size({"width": width, "height": 900})
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.locator("main section[aria-labelledby] > h2").count() == shown.locator("h2").count() == 9


@thinned(2)
@pytest.mark.parametrize("name", ["day", "noisy", "year"])
def test_usual_tables_fit_a_telephone(opened, name):
    with opened(name, width=390) as shown:
        wide = shown.evaluate(
            "[...document.querySelectorAll('.scroll')]"
            ".filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth)"
            ".map(one => one.innerText.slice(0, 60))"
        )
        assert wide == []


def test_no_number_is_broken_over_two_lines(opened):
    with opened("noisy") as shown:
        for width in (320, 390, 1440):
            shown.set_viewport_size({"width": width, "height": 900})
            assert shown.locator("span.n").count() > 50
            broken = shown.evaluate(
                "[...document.querySelectorAll('span.n')].filter(one => one.getClientRects().length > 1)"
                ".map(one => one.innerText)"
            )
            assert broken == [], width


def test_names_that_wish_no_good_run_nothing(opened):
    with opened("hostile") as shown:
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for element in shown.locator("table:has(#numbers-1) tbody th").all()[:30]:
            element.hover(force=True)
        assert shown.evaluate("document.scripts.length") == 0
        assert shown.evaluate("[...document.querySelectorAll('*')].every(one => !one.onmouseover && !one.onerror)")
