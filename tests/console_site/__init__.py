"""A real `toolmem serve` and a real Chromium, for tests, benchmarks and the pictures.

`service` starts the server in a process of its own, `chromium` opens the browser, `pages` fills a
store, names its pages, signs in, and finds what must not be on a page.
"""

from console_site.chromium import Missing, open_chromium
from console_site.pages import EVIL, SCHEMES, TOKEN, WIDTHS, fill, look, sign_in, signed_in
from console_site.service import start, stop

__all__ = [
    "EVIL",
    "SCHEMES",
    "TOKEN",
    "WIDTHS",
    "Missing",
    "fill",
    "look",
    "open_chromium",
    "sign_in",
    "signed_in",
    "start",
    "stop",
]
