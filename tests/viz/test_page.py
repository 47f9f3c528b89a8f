"""The interactive page, clicked through in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorflow_lite_clone import viz
from tensorflow_lite_clone.vision.models import resnet18
from tests.browser import chromium, complaints
from tests.device import DEVICE
from tests.viz.nets import Blocks, irregular, mlp, ones


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests here."""
    with chromium() as driver:
        driver.set_window_size(1200, 900)
        yield driver


class Page:
    """A graph's page in the browser."""

    def __init__(self, driver: Any, graph: viz.Graph, path: Path) -> None:
        self.driver = driver
        driver.get(graph.save(path).as_uri())

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def boxes(self, kind: str = "") -> list[str]:
        """The first lines of the boxes of a kind."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((box) => box.querySelector('text').textContent.replace(/ +/g, ' '))",
            f"#canvas .node{kind}",
        )

    def click(self, text: str, selector: str) -> None:
        """Click what shows this text."""
        (element,) = [e for e in self.all(selector) if e.text.startswith(text)]
        element.click()

    def details(self) -> str:
        return self.driver.find_element("id", "details").text

    def where(self) -> list[float]:
        """Left, top and scale of the picture."""
        moved = self.driver.find_element("id", "canvas").get_attribute("transform")
        return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", moved)]


def test_modules_open_and_close(browser: Any, tmp_path: Path) -> None:
    graph = viz.forward(Blocks(2).to(DEVICE), ones(2, 3))
    graph.depth = 0
    page = Page(browser, graph, tmp_path / "graph.html")
    closed = ["+ stem Linear", "+ blocks.0 Residual", "+ blocks.1 Residual", "+ head Linear"]
    assert page.boxes(".module") == closed
    page.click("+ blocks.0", "#canvas .module")
    assert page.boxes(".module") == [
        closed[0], "+ linear Linear", "+ act ReLU", *closed[2:],
    ]  # fmt: skip
    assert "add" in page.boxes(".op")
    assert "module\nblocks.0" in page.details()
    page.click("− blocks.0", "#canvas .title")
    assert page.boxes(".module") == closed
    page.click("Open all", "button")
    assert page.boxes(".module") == []
    assert len(page.boxes()) == len(graph.nodes)
    assert complaints(browser) == []


def test_search_opens_what_it_finds_and_shows_its_details(browser: Any, tmp_path: Path) -> None:
    page = Page(
        browser, viz.forward(resnet18().to(DEVICE), ones(2, 3, 32, 32)), tmp_path / "r.html"
    )
    assert "layer3.1.conv2.weight" not in page.boxes()
    search = page.driver.find_element("id", "search")
    search.send_keys("layer3.1.conv2.w")
    assert len(page.all("#found li")) == 1
    search.send_keys("\n")
    assert "layer3.1.conv2.weight" in page.boxes(".selected")
    assert not page.driver.find_element("id", "found").is_displayed()
    text = page.details()
    for words in ("256 x 256 x 3 x 3", "float32", "2.25 MiB", "589,824", "kind\nparameter"):
        assert words in text
    page.click("conv", "#details ul:last-child a")  # what reads it
    assert page.boxes(".selected") == ["conv"]
    assert "called at\nresnet.py, line" in page.details()
    page.click("layer3.1.conv2.weight", "#details a")
    assert page.boxes(".selected") == ["layer3.1.conv2.weight"]
    (box,) = page.all("#canvas .node.selected")
    assert 0 < box.rect["x"] < 900
    assert complaints(browser) == []


def test_zoom_and_pan(browser: Any, tmp_path: Path) -> None:
    page = Page(browser, viz.forward(mlp(), ones(5, 4)), tmp_path / "graph.html")
    first = page.where()
    page.click("+", "button")
    assert page.where()[2] == pytest.approx(first[2] * 1.4)
    page.click("Fit", "button")
    assert page.where() == pytest.approx(first)
    picture = page.driver.find_element("id", "picture")
    from selenium.webdriver import ActionChains

    ActionChains(browser).drag_and_drop_by_offset(picture, 60, 40).perform()
    assert page.where() != pytest.approx(first)
    assert page.where()[2] == first[2]
    (svg,) = page.all("#picture")
    browser.execute_script(
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -400, cancelable: true}))", svg
    )
    assert page.where()[2] == pytest.approx(first[2] * 2.71828, rel=1e-3)
    assert complaints(browser) == []


def test_colours_and_repeats(browser: Any, tmp_path: Path) -> None:
    graph = viz.forward(Blocks(12).to(DEVICE), ones(2, 3), time=True).fold()
    page = Page(browser, graph.color_by("time"), tmp_path / "graph.html")
    assert "blocks.0 Residual x 12" in [
        " ".join(title.get_attribute("textContent").split())[2:] for title in page.all(".title")
    ]
    assert page.all("path.next")
    hot = page.all("#canvas .heat")
    assert len(hot) == 5
    assert all(re.search(r"\d (µs|ms)$", box.get_attribute("textContent")) for box in hot)
    page.driver.find_element("css selector", "#colors option[value=kind]").click()
    assert page.all("#canvas .heat") == []
    assert complaints(browser) == []


def test_broken_gradients_are_marked(browser: Any, tmp_path: Path) -> None:
    x = ones(3, requires_grad=True)
    graph = viz.backward((x.log() * float("inf")).sum(), {"x": x}, gradients=True)
    page = Page(browser, graph, tmp_path / "graph.html")
    assert page.boxes(".broken") == ["x", "Log"]
    page.click("x", "#canvas .node")
    assert "|grad| inf" in page.details()
    assert complaints(browser) == []


def test_names_cannot_run_code(browser: Any, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"
    node = viz.Node("a", evil, group=evil, notes={evil: evil}, dtype=evil)
    group = viz.Group(evil, evil, evil, notes={evil: evil})
    graph = viz.Graph(evil, {"a": node}, [], {evil: group}, depth=1)
    page = Page(browser, graph, tmp_path / "graph.html")
    page.click(evil, "#canvas .node")
    assert browser.title == evil
    assert evil in page.details()
    assert page.all("img") == []
    assert len(page.all("script")) == 2
    browser.execute_script("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=1>')")
    assert any("Content Security Policy" in message for message in complaints(browser))


def test_a_graph_without_nodes(browser: Any, tmp_path: Path) -> None:
    page = Page(browser, viz.forward(lambda: None), tmp_path / "graph.html")
    assert page.boxes() == []
    assert complaints(browser) == []


def test_thousands_of_boxes(browser: Any, tmp_path: Path) -> None:
    graph = viz.backward(irregular(3000))
    page = Page(browser, graph, tmp_path / "graph.html")
    assert len(page.boxes()) == len(graph.nodes) > 3000
    assert complaints(browser) == []
