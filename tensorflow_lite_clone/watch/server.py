"""The server of the page: its files, what is new in the runs, and single large values.

Nothing can be written through it, and no path comes from a browser: the page's files are a fixed
table, and values are asked for by number.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tensorflow_lite_clone.utils.runs.log import encode
from tensorflow_lite_clone.utils.runs.reader import Reader

PAGE = Path(__file__).parent / "page"
# Path -> file of the page and its type.
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}": (name, "text/javascript") for name in os.listdir(PAGE) if name.endswith(".js")},
}
HEADERS = {
    "Cache-Control": "no-store",
    # Only the page's own files run or load, so that text from a log is never more than text.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
AT_ONCE = 20_000  # events in an answer
PAUSE = 0.3  # seconds between two looks at the files


class Refusal(Exception):
    """An answer that is an error: its status and its text."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Server(ThreadingHTTPServer):
    """Serves the page for a folder of runs at `host` and `port` (0 takes a free one).

    Requests must name this machine as their host: a page from elsewhere whose name was bound to
    this address (DNS rebinding) is refused. OSError where the port is taken.
    """

    daemon_threads = True

    def __init__(
        self, folder: str | os.PathLike, host: str = "127.0.0.1", port: int = 6006
    ) -> None:
        self.reader = Reader(folder)
        self._lock = threading.Lock()
        self._looked = -PAUSE
        # Pages that an earlier server has filled must begin anew.
        self._key = secrets.token_hex(4)
        self.names = {"localhost", host.lower()}
        if not is_loopback(host):
            self.names.add(socket.gethostname().lower())
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{name}:{port}/"

    def knows(self, header: str | None) -> bool:
        """Whether a request's host is this machine."""
        try:
            name = urlsplit(f"//{header}").hostname
        except ValueError:
            return False
        if not header or not name:
            return False
        return name in self.names or _is_address(name, loopback=is_loopback(self._host))

    @property
    def _host(self) -> str:
        return str(self.server_address[0])

    def news(self, generation: str, since: int) -> dict[str, Any]:
        """The events after the first `since` ones of a generation; of another, all of them."""
        with self._lock:
            if time.monotonic() - self._looked >= PAUSE:
                self.reader.poll()
                self._looked = time.monotonic()
            present = f"{self._key}.{self.reader.generation}"
            begin = since if generation == present else 0
            events = self.reader.events[begin : begin + AT_ONCE]
            more = begin + len(events) < len(self.reader.events)
            problems = self.reader.problems
        return {
            "folder": self.reader.folder,
            "generation": present,
            "since": begin,
            "more": more,
            "events": [event[:6] for event in events],
            "problems": problems,
        }

    def value(self, generation: str, number: int) -> Any:
        """The whole value of an event."""
        with self._lock:
            if generation != f"{self._key}.{self.reader.generation}":
                raise Refusal(HTTPStatus.GONE, "the files have changed")
            if not 0 <= number < len(self.reader.events):
                raise Refusal(HTTPStatus.NOT_FOUND, f"there is no event {number}")
            event = self.reader.events[number]
        try:
            return self.reader.load(event)
        except LookupError as error:
            raise Refusal(HTTPStatus.GONE, str(error)) from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing for a browser that goes away in the middle of an answer."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def is_loopback(host: str) -> bool:
    """Whether a host to listen at can be reached from this machine alone."""
    return host == "localhost" or _is_address(host, loopback=True)


def _is_address(name: str, loopback: bool) -> bool:
    """Whether a host is an address, not a name; with `loopback` one of this machine alone."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not loopback


class Handler(BaseHTTPRequestHandler):
    """Answers one browser."""

    server: Server
    timeout = 30  # seconds that a silent connection stays open

    def do_GET(self) -> None:
        """Answer a request; what it lacks is said in a line of text."""
        try:
            type, content = self._answer()
            status = HTTPStatus.OK
        except Refusal as refusal:
            status, type, content = refusal.status, "text/plain", f"{refusal}\n".encode()
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{type}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_GET

    def _answer(self) -> tuple[str, bytes]:
        if not self.server.knows(self.headers.get("Host")):
            raise Refusal(HTTPStatus.FORBIDDEN, "this host is not the one that the page is at")
        url = urlsplit(self.path)
        if url.path in FILES:
            name, type = FILES[url.path]
            return type, (PAGE / name).read_bytes()
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        generation = query.get("generation", "")
        if url.path == "/news":
            made = self.server.news(generation, _number(query, "since"))
        elif url.path == "/value":
            made = self.server.value(generation, _number(query, "number"))
        else:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is no such page")
        return "application/json", encode(made).encode()

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing: a page asks every second."""


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refusal(HTTPStatus.BAD_REQUEST, f"{name}={text!r}, expected a number")
    return int(text)
