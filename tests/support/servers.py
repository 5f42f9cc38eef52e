"""A real server on loopback, and clients of every role."""

import contextlib
import threading
import time

import httpx2

from dowise_web import tokens
from dowise_web.server import Server
from dowise_web.settings import Settings


class Running:
    """A server in a thread of its own."""

    def __init__(self, server):
        self.server = server
        self.address = f"http://127.0.0.1:{server.settings.port}"  # also behind a proxy's
        self.registry, self.storage = server.registry, server.registry.storage
        self._clients = []
        self._thread = threading.Thread(target=server.run, daemon=True)
        self._thread.start()
        self._wait()

    def _wait(self):
        for _ in range(200):
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.address}/health").status_code == 200:
                    return
            time.sleep(0.02)
        raise AssertionError("the server does not answer")

    def token(self, role, name=None):
        """The secret of a new token."""
        return tokens.create_token(self.storage, role, name or f"a {role}").secret

    def client(self, role="admin", name=None):
        """Somebody who has a token of this role."""
        headers = {"Authorization": f"Bearer {self.token(role, name)}"}
        return self._client(headers)

    def browser(self, role="admin"):
        """Somebody who came by a one-time link, with the cookie and headers that browsers send."""
        link = self.server.link(role, f"browser of {role}")
        headers = {"Sec-Fetch-Site": "same-origin", "Origin": self.address}
        client = self._client(headers)
        secret = link.partition("#")[2]
        assert client.post("/enter", data={"secret": secret}).status_code == 303
        return client

    def _client(self, headers):
        self._clients.append(httpx2.Client(base_url=self.address, headers=headers, timeout=30))
        return self._clients[-1]

    def stop(self):
        for client in self._clients:
            client.close()
        self.server.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def running(store, **settings):
    """Serve a store while the block runs."""
    found = Running(Server(store, Settings(**{"port": 0, **settings}), create=True))
    try:
        yield found
    finally:
        found.stop()
