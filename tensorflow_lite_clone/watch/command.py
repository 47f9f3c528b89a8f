"""The command ``watch``."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import socket
import sys
import webbrowser

from tensorflow_lite_clone.watch.server import Server, is_loopback


def main(arguments: list[str]) -> int:
    """Serve the page of a folder until it is interrupted; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow_lite_clone watch",
        description="Show training runs in a browser while they are written by "
        "utils.runs.SummaryWriter, or afterwards.",
    )
    parser.add_argument("logdir", metavar="LOGDIR", help="folder with a run, or folders of runs")
    parser.add_argument("--port", type=int, default=6006, help="0 takes a free one; default: 6006")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at; default: this machine only"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--no-browser", dest="open", action="store_false", help="do not; this is the default"
    )
    options = parser.parse_args(arguments)
    if os.path.exists(options.logdir) and not os.path.isdir(options.logdir):
        parser.error(f"{options.logdir} is a file, expected a folder")
    try:
        server = Server(options.logdir, options.host, options.port)
    except (OSError, OverflowError) as error:
        print(f"watch: {why_not(error, options.host, options.port)}", file=sys.stderr)
        return 1
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"{options.logdir} is shown at {server.url} (Ctrl-C ends it)", flush=True)
        if not os.path.exists(options.logdir):
            print(f"{options.logdir} is not there yet: the page waits for it", flush=True)
        if not is_loopback(options.host):
            print(
                f"warning: everybody who reaches {options.host} can see the runs; without --host "
                "only this machine can",
                file=sys.stderr,
                flush=True,
            )
        if options.open:
            webbrowser.open(server.url)
        server.serve_forever()
    return 0


def why_not(error: OSError | OverflowError, host: str, port: int) -> str:
    """Why the server cannot listen, and what to do."""
    if isinstance(error, OverflowError):
        return f"there is no port {port}: ports go up to 65535"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken: choose another one with --port, 0 takes any free one"
    if isinstance(error, PermissionError):
        return f"port {port} may not be used: choose one above 1023 with --port"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine"
    return f"cannot listen at {host}, port {port}: {error.strerror or error}"
