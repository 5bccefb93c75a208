#!/usr/bin/env python3
"""Serves the page with synthetic runs, so that the page can be tested without a training run.

usage: mock_server.py [--kind straggler|thousand|pipeline] [--port 0] [--seconds 60] [--rate 30]
                      [--ended] [--hostile] [--chart FILE]

The run has lasted for --seconds when the page opens it. With --ended it has ended, otherwise it
continues with --rate changes a second. --hostile puts markup into names. Each connection to /events
continues its own copy of the run. While `lost` is set, the server closes connections unanswered.
"""
import argparse
import copy
import json
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import mock_state  # noqa: E402
from mock_run import MockRun  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "dashboard" / "page"
CHART = Path("/usr/share/javascript/chart.js/chart.min.js")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "default-src 'self'")
        self.end_headers()
        self.wfile.write(body)

    def is_lost(self):
        self.close_connection = self.close_connection or self.server.lost.is_set()
        return self.server.lost.is_set()

    def do_GET(self):
        if self.is_lost():
            return
        path = self.path.partition("?")[0]
        server = self.server
        if path == "/state":
            self.answer(200, json.dumps(mock_state.state(server.run)).encode())
        elif path == "/events":
            self.stream()
        elif path == "/predict":
            time.sleep(0.5)
            self.answer(200, json.dumps(mock_state.predictions(server.run)).encode())
        elif path == "/operations":
            wanted = urllib.parse.parse_qs(self.path.partition("?")[2])
            begin, end, first, workers = (float(wanted[name][0])
                                          for name in ("from", "until", "first", "workers"))
            self.answer(200, json.dumps([op for op in server.run.operations if begin <= op[6] <= end
                                         and first <= op[0] < first + workers]).encode())
        elif path == "/chart.js":
            self.answer(200, server.chart.read_bytes(), TYPES[".js"])
        else:
            file = PAGE / ("index.html" if path == "/" else path[1:])
            if file.parent == PAGE and file.is_file():
                self.answer(200, file.read_bytes(), TYPES.get(file.suffix, "text/plain"))
            else:
                self.answer(404)

    def do_POST(self):
        if self.path.partition("?")[0] == "/stop":
            self.server.stopped.set()
            self.answer(204)
        else:
            self.answer(404)

    def event(self, name, data):
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        server = self.server
        run = copy.deepcopy(server.run)
        try:
            self.event("state", mock_state.state(run))
            if run.ended:
                return
            began, start, sent = time.monotonic(), run.now, 0
            while not server.stopped.is_set():
                if server.lost.is_set():
                    return
                sent += 1
                time.sleep(max(0.0, began + sent / server.rate - time.monotonic()))
                self.event("change", mock_state.change(run, start + sent / server.rate))
            run.mark(run.now, "end", "stopped")
            self.event("change", {"ended": {"reason": "stopped", "text": "stopped by the page"},
                                  "marks": run.marks})
        except (BrokenPipeError, ConnectionResetError):
            pass


class Server(ThreadingHTTPServer):
    daemon_threads = True


def serve(kind="straggler", port=0, seconds=60.0, rate=30, ended=False, hostile=False,
          chart=CHART):
    """Starts a server on loopback in a thread and returns it; `server.url` is its address."""
    run = MockRun(kind, hostile=hostile)
    while run.now < seconds:
        run.advance(min(seconds, run.now + 0.1))
    if ended:
        run.ended = {"reason": "finished", "text": "finished"}
        run.mark(run.now, "end", "finished")
    server = Server(("127.0.0.1", port), Handler)
    server.run, server.rate, server.chart = run, rate, Path(chart)
    server.stopped, server.lost = threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=["straggler", "thousand", "pipeline"],
                        default="straggler")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=30.0)
    parser.add_argument("--ended", action="store_true")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--chart", default=str(CHART))
    arguments = parser.parse_args()
    server = serve(**vars(arguments))
    print(server.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.shutdown()


if __name__ == "__main__":
    main()
