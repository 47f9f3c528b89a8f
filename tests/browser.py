"""Headless Chromium for tests that click through pages."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def why_no_browser() -> str | None:
    """Why pages cannot be clicked through here, or None."""
    if importlib.util.find_spec("selenium") is None:
        return "selenium is not installed"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"the program {program} is not installed (Debian: chromium, chromium-driver)"
    return None


@contextmanager
def chromium() -> Iterator[Any]:
    """Selenium's driver of a browser that is closed again; skips the test where there is none."""
    if reason := why_no_browser():
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def complaints(driver: Any) -> list[str]:
    """What the page's scripts printed as errors or warnings since this was last asked."""
    return [entry["message"] for entry in driver.get_log("browser")]
