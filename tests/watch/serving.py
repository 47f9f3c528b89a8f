"""A server of runs for the time of a test."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.watch import Server


@contextmanager
def serving(folder: Any, host: str = "127.0.0.1") -> Iterator[Server]:
    """A server of a folder that answers in another thread."""
    with Server(folder, host, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: Server, path: str, host: str | None = "localhost", method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content of the answer to a request, as it was written."""
    address, port = server.server_address[:2]
    connection = http.client.HTTPConnection(str(address), port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def news(server: Server, generation: str = "", since: int = 0) -> dict[str, Any]:
    """What the server tells a page."""
    status, _, content = ask(server, f"/news?generation={generation}&since={since}")
    assert status == 200, content
    return json.loads(content)
