"""An invented corpus with its manifest, and a server for it on 127.0.0.1."""

import hashlib
import http.server
import json
import socket
import threading
import time

from tfmann.datasets.catalog import load_manifest

TEXT = b"".join(b"line %d of an invented file\n" % i for i in range(5000))  # some 140 kB


class Server:
    """Serves `content`; its behaviour is set by the test, its requests are recorded."""

    def __init__(self):
        self.content = TEXT
        self.status = 200
        self.honours_range = True
        self.stops_after = None  # bytes of an answer after which it closes the connection
        self.skips = 0  # bytes by which a range begins later than requested
        self.breaks = False  # closes with a reset instead
        self.is_chunked = False  # sends no length, but one chunk without an end
        self.ranges = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802 (http.server's name)
                outer.answer(self)

            def log_message(self, *unused):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/file"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, handler):
        requested = handler.headers.get("Range")
        self.ranges.append(requested)
        body, status = self.content, self.status
        begin = 0
        if requested and self.honours_range and status == 200:
            begin = int(requested[len("bytes=") : -1]) + self.skips
            status = 206 if begin < len(body) else 416
        body = body[begin:] if status in (200, 206) else b"<html>no such thing</html>"
        handler.send_response(status)
        if status == 206:
            handler.send_header("Content-Range", f"bytes {begin}-{len(self.content) - 1}/*")
        if self.is_chunked:
            handler.protocol_version = "HTTP/1.1"
            handler.send_header("Transfer-Encoding", "chunked")
        else:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if self.is_chunked:
            handler.wfile.write(f"{len(body):x}\r\n".encode())
            handler.close_connection = True
        if self.stops_after is not None:
            body = body[: self.stops_after]
        handler.wfile.write(body)
        if self.breaks:
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, 0 s: close() sends a reset
            time.sleep(0.3)  # a reset overtakes data that is not read yet
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.connection.close()


def record(*entries):
    """A manifest of six files; those not given are refused by nobody's server."""
    files = {entry["path"]: entry for entry in entries}
    for split in ("train", "dev", "test"):
        for side in ("xx", "yy"):
            path = f"{split}.{side}"
            files.setdefault(path, {"path": path, "urls": ["http://127.0.0.1:9/"], "lines": 5000})
    return {
        "name": "invented",
        "description": "d",
        "licence": "l",
        "tokenisation": "t",
        "source": "xx",
        "target": "yy",
        "splits": {split: {"prefix": split} for split in ("train", "dev", "test")},
        "vocabularies": None,
        "files": list(files.values()),
    }


def manifest_of(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_manifest(path)


def one_file(*urls, **checks):
    checks = checks or {"sha256": hashlib.sha256(TEXT).hexdigest()}
    return {"path": "train.xx", "urls": list(urls), **checks}


def corpus(tmp_path, *entries, missing=("train.xx",)):
    """Returns a manifest and a folder that lacks only `missing`."""
    folder = tmp_path / "corpus"
    folder.mkdir(exist_ok=True)
    manifest = manifest_of(tmp_path, record(*entries))
    for entry in manifest.files:
        if entry.path not in missing:
            (folder / entry.path).write_bytes(TEXT)
    return manifest, folder


def names_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


COMPLETE = ["dev.xx", "dev.yy", "test.xx", "test.yy", "train.xx", "train.yy"]
WITHOUT_IT = [name for name in COMPLETE if name != "train.xx"]
