"""The files of the live page. Nothing in them comes from a model, so they need no token."""

from importlib import resources

from redescend.streaming.report.page import read_part

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _read(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


PAGE = {
    "index.html": _read("index.html"),
    "live.css": read_part("style.css") + _read("live.css"),
    "live.js": _read("live.js"),
}
"""By name."""
