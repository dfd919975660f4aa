"""The browser of the tests."""

import pytest

from privhelpers import browser


@pytest.fixture(scope="module")
def chromium():
    """Yield a headless Chromium; its absence is a failure, since an unseen site counts as broken."""
    path = browser.require_chromium("looks at the site")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=browser.arguments())
        yield opened
        opened.close()
