"""A real server on loopback, and HTTP clients of every role."""

import contextlib
import threading

import httpx2

from dowise_web import tokens
from dowise_web.server import Server
from dowise_web.settings import Settings
from support.processes import wait_until


class RunningServer:
    """A server that runs in a thread."""

    def __init__(self, server):
        self.server = server
        self.address = f"http://127.0.0.1:{server.settings.port}"  # even behind a proxy
        self.registry, self.storage = server.registry, server.registry.storage
        self._clients = []
        self._thread = threading.Thread(target=server.run, daemon=True)
        self._thread.start()
        assert wait_until(self._is_up, 20), "the server does not answer"

    def _is_up(self):
        with contextlib.suppress(httpx2.TransportError):
            return httpx2.get(f"{self.address}/health").status_code == 200
        return False

    def token(self, role, name=None):
        """Create a token, and return its secret."""
        return tokens.create_token(self.storage, role, name or f"a {role}").secret

    def link(self, role="admin"):
        """Create a one-time link, and return its secret."""
        return self.server.link(role, f"browser of {role}").partition("#")[2]

    def client(self, role="admin", name=None):
        """Return a client with a token."""
        return self.new_client({"Authorization": f"Bearer {self.token(role, name)}"})

    def browser(self, role="admin"):
        """Return a client with a session, and the headers that browsers send."""
        client = self.anonymous_browser()
        assert client.post("/enter", data={"secret": self.link(role)}).status_code == 303
        return client

    def anonymous_browser(self):
        """Return a client with the headers that browsers send, and no session."""
        return self.new_client({"Sec-Fetch-Site": "same-origin", "Origin": self.address})

    def new_client(self, headers):
        """Return a client that is closed with the server."""
        client = httpx2.Client(base_url=self.address, headers=headers, timeout=30)
        self._clients.append(client)
        return client

    def stop(self):
        """Stop the server and close its clients."""
        for client in self._clients:
            client.close()
        self.server.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def running(store, **settings):
    """Serve a store while the block runs."""
    server = RunningServer(Server(store, Settings(**{"port": 0, **settings}), create=True))
    try:
        yield server
    finally:
        server.stop()
