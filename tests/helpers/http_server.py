"""An application on a port of 127.0.0.1, served by a thread, and a client for it."""

import contextlib
import http.client
import json
import threading
import time

from tfmann.serving import server


class Client:
    """Asks a server, with a connection for each request."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, headers=None):
        """Status and body, decoded where it is JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.getheader("content-type", "").startswith("application/json"):
                return answer.status, json.loads(text)
            return answer.status, text
        finally:
            connection.close()

    def post(self, path, value):
        """The same for JSON."""
        body = value if isinstance(value, (bytes, str)) else json.dumps(value)
        return self.ask("POST", path, body, {"Content-Type": "application/json"})

    def get(self, path):
        return self.ask("GET", path)


@contextlib.contextmanager
def served(app):
    """Serves an application; yields a client."""
    import uvicorn

    listener = server.bind("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")
    program = uvicorn.Server(config)
    thread = threading.Thread(target=program.run, kwargs={"sockets": [listener]})
    thread.start()
    while not program.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield Client(listener.getsockname()[1])
    finally:
        program.should_exit = True
        thread.join(120)
        listener.close()
    assert not thread.is_alive()
