"""The page of the live view, clicked through in a browser."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils.runs import SummaryWriter
from tests.browser import chromium, complaints
from tests.watch.serving import serving

EVIL = "<img src=x onerror=\"document.title='broken in'\">"


@pytest.fixture(scope="module")
def driver():
    with chromium() as driver:
        driver.set_window_size(1400, 1000)
        yield driver


def write(folder, rate, name):
    """A small run of everything that is drawn."""
    with SummaryWriter(folder / name) as writer:
        for step in range(40):
            writer.add_scalar("loss/train", 2 * math.exp(-rate * step), step, 1000.0 + step / 4)
        writer.add_scalar("loss/train", math.nan, 40, 1010.0)
        for step in (0, 20, 40):
            writer.add_histogram("weights", tlc.linspace(-rate, 1, 50), step, "auto", 1000.0 + step)
            writer.add_image("digits", tlc.ones(1, 4, 4) * step / 40, step, 1000.0 + step)
            writer.add_text("note", f"at {step} {EVIL}", step, 1000.0 + step)
        writer.add_pr_curve("curve", np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4]))
        writer.add_histogram_raw("endless", 0, 1, 2, 3, 4, [0, 1, math.inf], [0, 3, 4])
        writer.add_audio("sound", tlc.zeros(1, 20))
        writer.add_mesh("mesh", tlc.zeros(1, 2, 3))
        writer.add_hparams({"rate": rate, "kind": EVIL}, {"score": rate * 10}, run_name=".")


@pytest.fixture(scope="module")
def page(driver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write(folder, 0.1, "slow")
    write(folder, 0.2, "fast")
    with serving(folder) as server:
        driver.get(server.url)
        waited(driver, "return document.querySelectorAll('.card svg path.line').length >= 4")
        yield folder


def waited(driver, script, seconds=10):
    """What a script returns as soon as that is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := driver.execute_script(script):
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} seconds: {script}; {complaints(driver)}")


CARD = "const card = (title) => [...document.querySelectorAll('.card')]"
CARD += ".find(c => c.querySelector('h3')?.firstChild.textContent === title && !c.hidden);"
SET = "const set = (id, key, to) => { const e = document.getElementById(id); e[key] = to;"
SET += "e.dispatchEvent(new Event('input')); };"


def paths(driver, title="train"):
    """The lines of a chart, once it is drawn: their classes and forms."""
    return driver.execute_script(
        CARD + "return [...card(arguments[0]).querySelectorAll('path.line')]"
        ".map(p => [p.getAttribute('class'), p.getAttribute('d')])",
        title,
    )


def hover(driver, title, x):
    """Move the pointer to a place at the lower end of a chart."""
    driver.execute_script(
        CARD + "const svg = card(arguments[0]).querySelector('svg');"
        "const box = svg.getBoundingClientRect();"
        "const at = {clientX: box.left + arguments[1], clientY: box.bottom - 9};"
        "svg.dispatchEvent(new MouseEvent('mousemove', at))",
        title,
        x,
    )


def test_groups_and_runs(driver, page):
    groups = driver.execute_script(
        "return [...document.querySelectorAll('summary')].map(s => s.firstChild.textContent)"
    )
    assert set(groups) == {
        "loss", "scalars", "throughput", "histograms", "pictures", "text", "sound",
        "precision and recall", "hyperparameters",
    }  # fmt: skip
    names = driver.execute_script(
        "return [...document.querySelectorAll('#runs .name')].map(n => n.firstChild.textContent)"
    )
    assert names == ["fast", "slow"]
    assert "records, the newest" in driver.find_element("id", "status").text
    problems = driver.find_element("id", "problems").text
    assert problems == "written, but not drawn here: mesh (mesh)"


def test_toggled_runs(driver, page):
    assert [kind for kind, _ in paths(driver)] == ["line c0", "line c1"]
    box = driver.find_elements("css selector", "#runs input")[0]
    box.click()
    waited(driver, CARD + "return card('train').querySelectorAll('path.line').length === 1")
    assert [kind for kind, _ in paths(driver)] == ["line c1"]
    driver.find_element("id", "none").click()
    waited(driver, CARD + "return !card('train')")
    driver.find_element("id", "all").click()
    waited(driver, CARD + "return card('train')?.querySelectorAll('path.line').length === 2")


def test_smoothing_scale_and_axis(driver, page):
    plain = paths(driver)
    driver.execute_script(SET + "set('smoothing', 'value', 0.9)")
    waited(driver, CARD + "return card('train').querySelectorAll('path.raw').length === 2")
    smooth = paths(driver)
    assert smooth[0][1] == plain[0][1]  # the values, faint
    assert smooth[1][1] != plain[0][1]
    driver.execute_script(SET + "set('smoothing', 'value', 0); set('log', 'checked', true)")
    script = CARD + "return card('train').querySelectorAll('path.line').length === 2"
    waited(driver, script)
    # The logarithm of an exponential is a line: its slope is one all along.
    points = [[float(x) for x in point.split()] for point in paths(driver)[0][1][1:].split("L")]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(points, points[1:])]
    assert max(slopes) - min(slopes) < 0.1 * abs(slopes[0])
    driver.execute_script(SET + "set('log', 'checked', false); set('axis', 'value', 'time')")
    labels = CARD + "return [...card('train').querySelectorAll('text')].map(t => t.textContent)"
    waited(driver, labels + ".includes('10 s')")
    driver.execute_script(SET + "set('axis', 'value', 'step')")
    waited(driver, labels + ".includes('40')")


def test_values_under_the_pointer(driver, page):
    driver.execute_script(
        CARD
        + "const svg = card('train').querySelector('svg'); const b = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new MouseEvent('mousemove', {clientX: b.left + 50, clientY: b.top + 9}))"
    )
    box = CARD + "return card('train').querySelector('.readout')"
    text = driver.execute_script(box + ".innerText")
    assert "slow" in text and "fast" in text
    assert text.count("2\tstep 0, 0 s") == 2
    driver.execute_script(
        CARD + "card('train').querySelector('svg').dispatchEvent(new MouseEvent('mouseleave'))"
    )
    assert driver.execute_script(box + ".hidden")
    note = driver.execute_script(CARD + "return card('train').querySelector('.note').textContent")
    assert note == "2 not finite (×)"


def test_speed_from_the_times(driver, page):
    title = "steps per second (from the records' times)"
    driver.execute_script(CARD + "card(arguments[0]).scrollIntoView()", title)
    waited(driver, f"{CARD} return card(\"{title}\").querySelectorAll('path.line').length === 2")
    labels = driver.execute_script(
        CARD + "return [...card(arguments[0]).querySelectorAll('text')].map(t => t.textContent)",
        title,
    )
    assert "4" in labels


def test_histograms(driver, page):
    driver.execute_script(CARD + "card('weights').scrollIntoView()")
    waited(driver, CARD + "return card('weights').querySelectorAll('path.ridge').length === 3")
    driver.execute_script(
        CARD
        + "const svg = card('weights').querySelector('svg'); const b = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new MouseEvent('mousemove', {clientX: b.left + 150, clientY: b.bottom}))"
    )
    text = CARD + "return card('weights').querySelector('.readout').textContent"
    assert driver.execute_script(text).startswith("step 40: ")
    path = CARD + "return card('endless').querySelector('path.ridge')?.getAttribute('d')"
    assert "NaN" not in waited(driver, path)


def test_pictures_texts_and_sound(driver, page):
    driver.execute_script(CARD + "card('digits').scrollIntoView()")
    image = CARD + "const image = card('digits').querySelector('img'); return "
    newest = waited(driver, image + "image?.naturalWidth === 4 && image.src")
    driver.execute_script(
        CARD + "const slider = card('digits').querySelector('input'); slider.value = 0;"
        "slider.dispatchEvent(new Event('input'))"
    )
    waited(driver, image + f"image.src !== '{newest}' && image.naturalWidth === 4")
    for tag, kind in (("note", "pre"), ("sound", "audio"), ("curve", "path.line")):
        driver.execute_script(CARD + "card(arguments[0]).scrollIntoView()", tag)
        waited(driver, f"{CARD} return card('{tag}').querySelector('{kind}')")
    note = driver.execute_script(CARD + "return card('note').querySelector('pre').textContent")
    assert note == f"at 40 {EVIL}"
    sound = CARD + "return card('sound').querySelector('audio')"
    waited(driver, sound + ".readyState > 0")


def test_hyperparameters(driver, page):
    table = "return [...document.querySelectorAll('table.sheet tr')]"
    table += ".map(r => [...r.children].map(c => c.textContent.trim()))"
    driver.execute_script("document.querySelector('article.whole').scrollIntoView()")
    assert waited(driver, table + ".slice(1)") == [
        ["fast", "0.2", EVIL, "2"], ["slow", "0.1", EVIL, "1"],
    ]  # fmt: skip
    driver.execute_script("document.querySelectorAll('table.sheet th')[1].click()")
    assert [row[0] for row in driver.execute_script(table)][1:] == ["slow", "fast"]


def test_it_grows_while_a_run_writes(driver, page):
    driver.execute_script("scrollTo(0, 0)")
    before = paths(driver)[0][1]
    with SummaryWriter(page / "new", max_queue=1) as writer:
        writer.add_scalar("loss/train", 1.0, 0)
        writer.add_scalar(EVIL, 1.0, 0)
        waited(driver, CARD + "return card('train').querySelectorAll('.c2').length")
        writer.add_scalar("loss/train", 0.5, 100)
        line = CARD + "return card('train').querySelector('path.c2').getAttribute('d')"
        waited(driver, line + ".includes('L')")
    assert paths(driver)[0][1] != before  # the axis is longer
    waited(driver, CARD + f"return Boolean(card({EVIL!r}))")
    (page / "new" / "broken.jsonl").write_text("what\n")
    waited(driver, "return document.getElementById('problems').innerText.includes('malformed')")
    for path in (page / "new").iterdir():
        path.unlink()
    waited(driver, "return document.querySelectorAll('#runs li').length === 2")


def test_tags_are_filtered(driver, page):
    driver.execute_script(SET + "set('filter', 'value', 'TRAIN')")
    shown = "return [...document.querySelectorAll('details')].filter(d => !d.hidden).length"
    waited(driver, shown + " === 1")
    driver.execute_script(SET + "set('filter', 'value', '')")
    waited(driver, shown + " > 5")


def test_light_and_dark(driver, page):
    color = "return getComputedStyle(document.body).backgroundColor"
    seen = [driver.execute_script(color)]
    driver.find_element("id", "theme").click()
    seen.append(driver.execute_script(color))
    assert len(set(seen)) == 2


def test_nothing_from_a_log_ran(driver, page):
    """Last: nothing that came before has made the browser complain."""
    assert driver.title == "Training runs"
    assert complaints(driver) == []


def test_a_server_that_ends(driver, tmp_path):
    with serving(tmp_path) as server:
        driver.get(server.url)
        waited(driver, "return document.getElementById('status').className === 'live'")
        assert "Nothing has been logged" in driver.find_element("tag name", "main").text
    waited(driver, "return document.getElementById('status').className === 'lost'")
    complaints(driver)  # that the server does not answer
