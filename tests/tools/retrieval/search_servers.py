"""Servers for the tests, on ports the system chooses: one of Search-R1's protocol, one that misbehaves on demand."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def protocol_server(find, log=None):
    """A server written from Search-R1's protocol alone. ``find(query)`` gives (id, contents, score) triples."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if log is not None:
                log.append((self.path, request))
            rows = []
            for query in request["queries"]:
                documents = [({"id": i, "contents": c}, score) for i, c, score in find(query)[: request["topk"]]]
                scored = request["return_scores"]
                rows.append([{"document": d, "score": s} if scored else d for d, s in documents])
            body = json.dumps({"result": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def http_reply(body, status="200 OK"):
    """The bytes of a whole HTTP reply."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def raw_server(behave):
    """Accepts connections; ``behave(connection, stop)`` does with each what it likes, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()
    threads = []

    def handle(connection):
        with connection, suppress(OSError):
            behave(connection, stop)

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=handle, args=(connection,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [acceptor, *threads]:
            thread.join()


def read_request(connection):
    """Read one HTTP request and return its JSON."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < length:
        body += connection.recv(65536)
    return json.loads(body)


def reply_with(data):
    """A behaviour: answer one request with these bytes and hang up."""

    def behave(connection, stop):
        read_request(connection)
        connection.sendall(data)

    return behave


def drip(data, pause=0.05):
    """A behaviour: answer with these bytes, one at a time, and then go on for ever."""

    def behave(connection, stop):
        read_request(connection)
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.001)
        while not stop.wait(pause):
            connection.sendall(b"x")

    return behave


def hang(connection, stop):
    """A behaviour: read and say nothing."""
    connection.settimeout(0.05)
    while not stop.is_set():
        try:
            connection.recv(65536)
            stop.wait(0.02)
        except TimeoutError:
            pass
