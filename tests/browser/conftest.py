"""One headless Chromium for the tests of a module; pages that complain or ask a network for something fail the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

Open = Callable[..., Page]

# Milliseconds; a loaded machine may take its time, and a test that waits is not the place to judge it.
PATIENCE = 180_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it: Playwright's own download is not needed.

    Not longer than a module: Playwright keeps an event loop running, beside which other tests could not run theirs.
    """
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("Chromium is not installed; on Debian: apt-get install -y chromium")
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root, as which CI containers run.
        found = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE
        )
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a page from its text, as a file; then nothing may stand in the console, nor have left the machine."""
    complaints: list[str] = []
    pages: list[Page] = []

    def start(text: str, *, dark: bool = False, width: int = 1280, height: int = 800) -> Page:
        file = tmp_path / f"page{len(pages)}.html"
        file.write_text(text, encoding="utf-8")
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", offline=True
        )
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: complaints.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        page.wait_for_selector("html.ready")
        pages.append(page)
        return page

    yield start
    for page in pages:
        page.close()
    assert complaints == []
