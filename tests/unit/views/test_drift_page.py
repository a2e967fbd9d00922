"""The drift report's page in a real Chromium: quiet, narrow, dark, by keyboard alone, without scripts, and with values
of somebody who means harm."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright

from bench import report_html
from reconciler.core.drift import Report
from reconciler.views.drift_html import drift_html
from reconciler.views.words import one_line
from tests import chromium
from tests.unit.views import drifting

REPORTS: dict[str, Callable[[], Report]] = {
    "demo": drifting.demo,
    "calm": drifting.calm,
    "hostile": drifting.hostile,
    "thousand": report_html.large,
}
PHONE, DESK = {"width": 320, "height": 640}, {"width": 1280, "height": 900}
NEW = drifting.demo().new


@dataclass
class Opened:
    """A page, with all that it said and asked for."""

    page: Page
    troubles: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    async def shown(self) -> set[str]:
        """The ids of the findings that can be seen."""
        return set(await self.page.eval_on_selector_all(".f", "all => all.filter(x => x.offsetParent).map(x => x.id)"))

    async def told(self) -> str:
        return await self.page.inner_text("output")

    async def hash(self) -> str:
        return str(await self.page.evaluate("location.hash"))


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    program = chromium.program()
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=program, args=list(chromium.FLAGS))
        yield made
        await made.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in REPORTS}
    for name, path in made.items():
        path.write_text(drift_html(REPORTS[name]()), encoding="utf-8")
    return made


@pytest.fixture
async def opening(browser: Browser, pages: dict[str, Path]) -> AsyncIterator[Callable[..., Any]]:
    """Opens a report's page in a context of its own; in the end none of them may have said or loaded anything."""
    opened: list[Opened] = []

    async def open_page(name: str = "demo", hash_: str = "", **context: Any) -> Opened:
        made = await browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **context})
        page = await made.new_page()
        item = Opened(page)
        page.on("console", lambda message: item.troubles.append(message.text))
        page.on("pageerror", lambda error: item.troubles.append(str(error)))
        page.on("dialog", lambda dialog: item.troubles.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: item.requests.append(request.url))
        opened.append(item)
        await page.goto(f"{pages[name].as_uri()}{hash_}")
        return item

    yield open_page
    for item in opened:
        own = item.page.url.split("#")[0]
        assert [] == item.troubles
        assert set() == {url.split("#")[0] for url in item.requests if not url.startswith("data:")} - {own}
        await item.page.context.close()


@pytest.mark.parametrize("name", REPORTS)
async def test_the_page_is_quiet_fits_a_phone_and_can_be_read(opening: Callable[..., Any], name: str) -> None:
    made = await opening(name, viewport=PHONE)
    await made.page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    for scheme in ("light", "dark"):
        await made.page.emulate_media(color_scheme=scheme)
        assert [] == await made.page.evaluate(FAINT)
    assert 320 == await made.page.evaluate("document.documentElement.scrollWidth")
    assert 30 > await made.page.evaluate(HIGHEST_FIGURE)
    await made.page.set_viewport_size(DESK)
    assert 1280 == await made.page.evaluate("document.documentElement.scrollWidth")


HIGHEST_FIGURE = "Math.max(...[...document.querySelectorAll('.figures b')].map(x => x.offsetHeight))"
"""In pixels: a figure that is broken over lines is higher."""

FAINT = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parts(color).map((x) => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (item) => {
    for (; item; item = item.parentElement) {
      const color = getComputedStyle(item).backgroundColor;
      const [, , , alpha = 1] = parts(color);
      if (alpha === 1) return color;
      if (alpha > 0) throw new Error(`half a background: ${color}`);
    }
    return "rgb(255, 255, 255)";
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const item = node.parentElement;
    if (!node.data.trim() || item.closest("script, style, .vh, .skip") || !item.getClientRects().length) continue;
    const [one, two] = [light(getComputedStyle(item).color), light(ground(item))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) found.add(`${item.tagName} ${node.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...found];
}"""
"""Texts with less contrast than 4.5 to what is behind them (WCAG 2.2, 1.4.3)."""


async def test_the_faint_check_sees_a_faint_text(opening: Callable[..., Any]) -> None:
    made = await opening()
    await made.page.evaluate("document.querySelector('h1').setAttribute('class', 'i')")
    await made.page.evaluate("document.styleSheets[0].insertRule('h1 { color: #bbb }', 0)")
    await made.page.evaluate("document.styleSheets[0].insertRule('h1.i { color: #bbb }', 0)")
    assert 1 == len(await made.page.evaluate(FAINT))


async def test_dark_mode_is_dark_and_light_mode_is_light(opening: Callable[..., Any]) -> None:
    made = await opening(color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(await made.page.evaluate(color)) < 40
    await made.page.emulate_media(color_scheme="light")
    assert min(await made.page.evaluate(color)) > 220


STRUCTURE = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const levels = all("h1, h2, h3, h4").map((item) => Number(item.tagName[1]));
  const ids = all("[id]").map((item) => item.id);
  const named = (id) => document.getElementById(id)?.textContent.trim();
  return {
    lang: document.documentElement.lang,
    landmarks: ["header", "main", "footer"].map((name) => all(`body > ${name}`).length),
    skipped: levels.filter((level, at) => at > 0 && level > levels[at - 1] + 1),
    tops: levels.filter((level) => level === 1).length,
    twice: ids.filter((id, at) => ids.indexOf(id) !== at),
    unnamed: all("main > section").filter((item) => !named(item.getAttribute("aria-labelledby"))).length,
    inputs: all("input").filter((item) => !item.labels.length).length,
    drawings: all("svg").filter((item) => !item.closest("[aria-hidden]") && !item.getAttribute("aria-label")).length,
    cells: all("th").filter((item) => !item.scope).length,
    fieldsets: all("fieldset").filter((item) => !item.querySelector("legend")).length,
    dead: all("a[href^='#']").filter((item) => !named(item.hash.slice(1))).length,
    scrolling: all(".scroll").filter((item) => item.tabIndex !== 0 || !item.getAttribute("aria-label")).length,
  };
}"""


@pytest.mark.parametrize("name", REPORTS)
async def test_a_screen_reader_finds_its_way(opening: Callable[..., Any], name: str) -> None:
    made = await opening(name)
    found = await made.page.evaluate(STRUCTURE)
    assert {"lang": "en", "landmarks": [1, 1, 1], "tops": 1} == {
        key: found[key] for key in ("lang", "landmarks", "tops")
    }
    assert {key: [] if key in {"skipped", "twice"} else 0 for key in list(found)[3:] if key != "tops"} | {
        "skipped": []
    } == {key: value for key, value in found.items() if key not in {"lang", "landmarks", "tops"}}


async def test_what_a_screen_reader_hears_of_a_rank_and_a_chart(opening: Callable[..., Any]) -> None:
    made = await opening()
    tiles = await made.page.get_by_role("list", name="Nodes of dgx56").aria_snapshot()
    assert "rank 1 degraded" in tiles
    assert "rank 0 healthy" in tiles
    chart = made.page.get_by_role("img", name="runtime, in the last 25 reports, the oldest first: 0,")
    assert str(await chart.get_attribute("aria-label")).endswith(", 1, 1, 0, 0, 0, 1")


async def test_filters_show_count_and_go_into_the_address(opening: Callable[..., Any]) -> None:
    made = await opening()
    page = made.page
    assert "7 of 7 shown" == await made.told()
    await page.get_by_role("checkbox", name="runtime").uncheck()
    assert ("6 of 7 shown", "#class=intent%2Cconfig%2Cidentity%2Chost") == (await made.told(), await made.hash())
    await page.get_by_label("only new").check()
    assert NEW - {drifting.FINDINGS[0].id} == await made.shown()
    await page.reload()
    assert "1 of 7 shown" == await made.told()
    await page.get_by_role("button", name="Show all").click()
    assert ("7 of 7 shown", "") == (await made.told(), await made.hash())
    await page.get_by_label("Text").fill("DGX3 always")
    assert {drifting.FINDINGS[2].id} == await made.shown()
    assert 1 == await page.locator(".group:visible").count()
    await page.get_by_label("Text").fill("nowhere")
    assert await page.get_by_text("Nothing fits this filter.").is_visible()


async def test_a_link_shows_what_its_sender_saw(opening: Callable[..., Any]) -> None:
    made = await opening(hash_="#severity=outage&new=1&q=dgx6")
    assert {drifting.FINDINGS[0].id} == await made.shown()
    assert "dgx6" == await made.page.get_by_label("Text").input_value()
    hidden = drifting.FINDINGS[1].id
    await made.page.evaluate(f"location.hash = '{hidden}'")
    await made.page.wait_for_function("document.querySelector('output').textContent === '7 of 7 shown'")
    assert hidden in await made.shown()


@pytest.mark.parametrize(
    "hash_", ["#q=%3Cimg src=x onerror=alert(1)%3E&class=<b>&severity=%", "#%", "#=&&&=", "#__proto__=1"]
)
async def test_an_address_of_somebody_else_does_no_harm(opening: Callable[..., Any], hash_: str) -> None:
    made = await opening(hash_=hash_)
    assert (await made.told()).endswith(" of 7 shown")
    assert 0 == await made.page.locator("img").count()


async def test_the_figures_on_top_are_filters(opening: Callable[..., Any]) -> None:
    made = await opening()
    await made.page.get_by_role("link", name="outages").click()
    assert {drifting.FINDINGS[0].id, drifting.FINDINGS[5].id} == await made.shown()
    assert "findings" == await made.page.evaluate("document.activeElement.id")


async def test_the_keyboard_alone_is_enough(opening: Callable[..., Any]) -> None:
    """Tab by Tab: everything that can be used is reached in the order of the page, and it is seen where one is."""
    made = await opening()
    keys = made.page.keyboard
    await keys.press("Tab")
    assert "Skip to the findings" == await made.page.evaluate("document.activeElement.textContent")
    await keys.press("Enter")
    await keys.press("Tab")
    assert "q" == await made.page.evaluate("document.activeElement.name")
    await keys.type("dgx")
    await keys.press("Tab")
    assert ["severity", "outage"] == await made.page.evaluate(
        "[document.activeElement.name, document.activeElement.value]"
    )
    await keys.press("Space")
    assert "4 of 7 shown" == await made.told()
    seen = []
    for _ in range(12):
        seen.append(await made.page.evaluate(FOCUS))
        await keys.press("Tab")
    assert ["outage", "degraded", "notice", "intent", "config", "identity", "runtime", "host", "1", "Show all"] == [
        name for name, _ in seen[:10]
    ]
    assert [3] * 12 == [width for _, width in seen]


FOCUS = """() => {
  const item = document.activeElement;
  const seen = item.type === "checkbox" ? item.nextElementSibling : item;
  return [item.value || item.textContent, parseInt(getComputedStyle(seen).outlineWidth)];
}"""
"""What has the focus, and how wide the ring around it is, in pixels."""


async def test_without_scripts_all_is_shown_in_utc(opening: Callable[..., Any]) -> None:
    made = await opening(java_script_enabled=False, timezone_id="Asia/Tokyo")
    assert 7 == await made.page.locator(".f:visible").count()
    assert 0 == await made.page.locator(".filters:visible").count()
    assert "2026-11-30 12:00:00Z" == await made.page.locator(".facts time").inner_text()


async def test_times_are_the_readers(opening: Callable[..., Any]) -> None:
    made = await opening(timezone_id="Asia/Tokyo", locale="en-GB")
    looked = made.page.locator(".facts time")
    assert "30 Nov 2026, 21:00" == await looked.inner_text()
    assert "2026-11-30 12:00:00 UTC" == await looked.get_attribute("title")


async def test_hostile_values_are_nothing_but_text(opening: Callable[..., Any]) -> None:
    made = await opening("hostile")
    assert (1, 0) == (await made.page.locator("script").count(), await made.page.locator("img, iframe, object").count())
    assert [] == await made.page.evaluate("[...document.querySelectorAll('*')].filter(x => x.onmouseover || x.onerror)")
    found = await made.page.eval_on_selector_all(".f", "all => all.map(x => x.querySelector('code').textContent)")
    assert sorted(one_line(evil) for evil in drifting.EVIL) == sorted(set(found))
    assert "{{ 7*7 }}" in json.dumps(found)
    targets = await made.page.eval_on_selector_all("a", "all => all.map(x => x.getAttribute('href'))")
    assert [] == [target for target in targets if not target.startswith("#")]


async def test_a_thousand_findings_can_still_be_filtered(opening: Callable[..., Any]) -> None:
    made = await opening("thousand", viewport=PHONE)
    assert "1000 of 1000 shown" == await made.told()
    await made.page.get_by_label("Text").fill("dgx017 restart")
    assert {"restart", "restart.1", "restart.2"} >= set(
        await made.page.eval_on_selector_all(".f:not([hidden]) code", "all => all.map(x => x.textContent)")
    )
    assert 1 == await made.page.locator(".group:visible").count()


async def test_paper_has_every_finding_and_no_filters(opening: Callable[..., Any]) -> None:
    made = await opening(color_scheme="dark")
    await made.page.emulate_media(media="print")
    assert 7 == await made.page.locator(".f:visible").count()
    assert 0 == await made.page.locator(".filters:visible").count()
    assert [] == await made.page.evaluate(FAINT)
