"""The page in a real browser: it loads without a word or a request, sorts by mouse and keyboard, and fits a phone."""

import pytest

from markov_theory.report.__main__ import main
from tests.report.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

PHONE, SMALL_PHONE, DESKTOP = (390, 844), (320, 568), (1280, 900)
CELLS = "[...document.querySelectorAll('table')].find(t => t.closest('details.folded'))"
HEADING = f"[...{CELLS}.tHead.rows[0].cells].find(h => h.textContent === '%s')"
VALUES = f"""(() => {{
    const table = {CELLS}, column = {HEADING}.cellIndex;
    return [...table.tBodies[0].rows].map(r => r.cells[column].dataset.value ?? r.cells[column].textContent);
}})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def address(made, hostile, verified, planned, tmp_path_factory):
    """A page of one result of every sort."""
    out = tmp_path_factory.mktemp("page") / "page.html"
    assert main([*map(str, (made, hostile, verified, planned)), "--out", str(out)]) == 0
    return out.as_uri()


@pytest.fixture
def table(browser, address):
    """The page with its first folded table, that of the cells, open."""
    browser.open(address, *DESKTOP)
    browser.click(f"{CELLS}.closest('details').querySelector('summary')")
    assert browser.run(f"{CELLS}.closest('details').open")
    return browser


def numbers(texts):
    return [float(text) if text else None for text in texts]


def test_nothing_is_said_and_nothing_fetched(browser, address):
    browser.open(address, *DESKTOP)
    assert browser.messages == []
    assert [one for one in browser.requests if not one.startswith("data:")] == [address]
    assert browser.run("document.scripts.length") == 1
    assert browser.run("getComputedStyle(document.querySelector('.number')).textAlign") == "right"
    assert browser.run("[...document.images].every(one => one.naturalWidth > 200 && one.alt.length > 50)")


def test_the_policy_stops_what_is_not_the_pages_own(browser, address):
    browser.open(address, *DESKTOP)
    browser.run("""(() => {
        const script = document.createElement('script');
        script.textContent = 'document.title = "taken"';
        document.body.append(script);
        const picture = document.createElement('img');
        picture.src = 'http://127.0.0.1:9/x.png';
        document.body.append(picture);
    })()""")
    assert browser.run("document.title") != "taken"
    assert len([said for said in browser.messages if "Content Security Policy" in said]) == 2


@pytest.mark.parametrize(("name", "held"), [("n_star", "inf"), ("low", "-1.0"), ("support_margin", "0.0")])
def test_numbers_sort_as_numbers_both_ways(table, name, held):
    before = table.run(VALUES % name)
    assert any(text.startswith(held) for text in before)
    for direction in ("ascending", "descending"):
        table.click((HEADING + ".querySelector('button')") % name)
        assert table.run(f"{HEADING % name}.ariaSort") == direction
        assert numbers(table.run(VALUES % name)) == sorted(numbers(before), reverse=direction == "descending")


def test_rows_stay_whole_and_only_one_column_is_marked(table):
    rows = f"[...{CELLS}.tBodies[0].rows].map(r => r.textContent)"
    before = table.run(rows)
    for name in ("estimator", "n_star", "S6"):
        table.click((HEADING + ".querySelector('button')") % name)
        assert table.run(f"{CELLS}.querySelectorAll('[aria-sort]').length") == 1
    after = table.run(rows)
    assert after != before
    assert sorted(after) == sorted(before)
    assert table.messages == []


def test_missing_values_come_last_either_way(table):
    for direction in ("ascending", "descending"):
        table.click((HEADING + ".querySelector('button')") % "S6")
        assert table.run(f"{HEADING % 'S6'}.ariaSort") == direction
        values = table.run(VALUES % "S6")
        missing = values.count("")
        assert 0 < missing < len(values)
        assert set(values[-missing:]) == {""}


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_sorts(table, key):
    table.run(f"{HEADING % 'truth'}.querySelector('button').focus()")
    table.press("Tab")
    assert table.run("document.activeElement.closest('th').textContent") == "n_star"
    assert table.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    table.press(key)
    assert table.run(f"{HEADING % 'n_star'}.ariaSort") == "ascending"
    assert numbers(table.run(VALUES % "n_star")) == sorted(numbers(table.run(VALUES % "n_star")))


@pytest.mark.parametrize("size", [PHONE, SMALL_PHONE, DESKTOP], ids=lambda size: str(size[0]))
def test_the_page_is_as_wide_as_the_window(browser, address, size):
    browser.open(address, *size)
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.run("innerWidth") == size[0]
    assert browser.run("document.documentElement.scrollWidth") <= size[0]
    assert browser.run("Math.max(...[...document.querySelectorAll('h1, h2, p, dl, pre, .scroll')]"
                       ".map(one => one.getBoundingClientRect().right))") <= size[0]  # fmt: skip


def test_names_do_nothing(browser, address):
    browser.open(address, *DESKTOP)
    assert browser.run("document.querySelectorAll('[onerror], main script').length") == 0
    assert browser.messages == []


def test_folded_tables_are_printed(browser, address, tmp_path):
    browser.open(address, *DESKTOP)
    assert browser.run("document.querySelectorAll('details:not([open])').length") > 0
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0


def test_without_scripts_all_is_still_there(browser, address, made, tmp_path):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(address, *DESKTOP)
        assert browser.run("document.querySelectorAll('th button').length") == 0
        assert browser.run("document.querySelector('table').rows.length") > 1
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
