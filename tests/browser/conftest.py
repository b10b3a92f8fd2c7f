"""One headless Chromium for the tests of a module; pages that complain or ask a network for something fail the test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    with _opened(browser) as (start, _):
        files = 0

        def from_file(text: str, **options: Any) -> Page:
            nonlocal files
            file = tmp_path / f"page{files}.html"
            files += 1
            file.write_text(text, encoding="utf-8")
            return start(file.as_uri(), {file.as_uri()}, offline=True, **options)

        yield from_file


@pytest.fixture
def open_url(browser: Browser) -> Iterator[Open]:
    """Opens a page that this machine serves, which may ask this server for its numbers, and no other one."""
    with _opened(browser) as (start, complaints):

        def from_server(url: str, **options: Any) -> Page:
            return start(f"{url}/", {f"{url}/", f"{url}/data"}, offline=False, **options)

        yield from_server
        # Chromium itself says in the console that a server has gone, which a test may let happen.
        complaints[:] = [each for each in complaints if not re.search("ERR_CONNECTION_(REFUSED|RESET)", each)]


@contextmanager
def _opened(browser: Browser) -> Iterator[tuple[Open, list[str]]]:
    """How pages are opened, and what they complain of, which nothing may be left of in the end."""
    complaints: list[str] = []
    pages: list[Page] = []

    def start(
        url: str, asked: set[str], *, offline: bool, dark: bool = False, width: int = 1280, height: int = 800
    ) -> Page:
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", offline=offline
        )
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: complaints.append(request.url) if request.url.partition("?")[0] not in asked else None,
        )
        page.goto(url)
        page.wait_for_selector("html.ready")
        pages.append(page)
        return page

    yield start, complaints
    for page in pages:
        page.close()
    assert complaints == []
