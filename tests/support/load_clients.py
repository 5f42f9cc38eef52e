"""A crowd at a server: clients that ask, tell and look about once a second, and one who kills it.

The server is the command `dowise serve`, in a process of its own; the crowd is asyncio in this one.
Every client has a token, a stream of server-sent events that stays open, and remembers what it was
answered. A request whose connection breaks is repeated, with the same Idempotency-Key, until it is
answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field

import httpx2

from dowise import Experiment
from dowise_web import tokens

NAME, PROBLEM = "ward", "task2"
API = f"/api/experiments/{NAME}"
PAGES = f"/experiments/{NAME}"
LOOKS = {
    "status": f"{API}/status",
    "status in a context": f'{API}/status?context={{"C":"1"}}&tolerance=0.01',
    "the page Now": f"{PAGES}/now",
    "the page What we know": f"{PAGES}/known",
    "events": f"{API}/events?limit=50&after={{head}}",
    "pending": f"{API}/decisions?status=pending",
}
PATIENCE = 120.0  # seconds, for a start and for an answer after a kill


class Server:
    """`dowise serve` on a store, which may be killed and started again at the same port."""

    def __init__(self, store):
        self._store, self._port = store, 0
        self.address = ""
        self.start()

    def start(self):
        """Returns when the port is open."""
        line = [sys.executable, "-m", "dowise", "serve", str(self._store), "--json"]
        self._process = subprocess.Popen(
            [*line, "--port", str(self._port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    def _wait(self):
        said = "".join(iter(lambda: self._line(), "}\n")) + "}"
        self.address = json.loads(said)["url"]
        self._port = int(self.address.rpartition(":")[2])
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.address}/health").status_code == 200:
                    return
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.02)

    def _line(self):
        line = self._process.stdout.readline().decode()
        assert line, self._process.stderr.read().decode()
        return line

    def kill(self):
        """Without a word of warning."""
        self._process.kill()
        self._process.communicate()

    def stop(self):
        """As Ctrl-C does; what it said on stderr."""
        self._process.terminate()
        return self._process.communicate(timeout=PATIENCE)[1].decode()


@dataclass
class Heard:
    """What the crowd was answered, and how long that took."""

    seconds: list[tuple[str, float]] = field(default_factory=list)
    """Of every request its kind and its time, but for those that were repeated."""
    failures: list[str] = field(default_factory=list)
    """What was no good answer."""
    repeated: int = 0
    """How many requests were made again, because the connection broke."""
    asked: dict[int, str] = field(default_factory=dict)
    """The arm of each decision that was answered."""
    twice: list[int] = field(default_factory=list)
    """Decisions that two asks were answered by."""
    told: dict[tuple[int, str], str] = field(default_factory=dict)
    streamed: int = 0
    """How many events the streams brought."""


class Client:
    """One of the crowd."""

    def __init__(self, number, server, secret, seed, heard):
        self._number, self._heard = number, heard
        self._rng, self._asked = random.Random(f"{seed} {number}"), 0
        self._head, self._tag = 0, ""
        self._http = httpx2.AsyncClient(
            base_url=server.address,
            headers={"Authorization": f"Bearer {secret}"},
            timeout=PATIENCE,
        )

    async def live(self, done):
        """A request about every second: rounds of asking and telling, looks in between."""
        stream = asyncio.create_task(self._follow())
        try:
            await asyncio.sleep(self._rng.random())
            for step in self._steps():
                began = time.monotonic()
                if done.is_set():
                    break
                await step()
                await asyncio.sleep(max(began + 1 - time.monotonic(), 0))
        finally:
            stream.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stream
            await self._http.aclose()

    def _steps(self):
        while True:
            decision = {}
            yield lambda decision=decision: self._ask(decision)
            for name in ("Z", "Y"):
                yield self._look
                value = str(self._rng.randrange(2))
                yield lambda decision=decision, n=name, v=value: self._tell(decision, n, v)
            yield self._look

    async def _ask(self, decision):
        self._asked += 1
        key = f"client {self._number}, {self._asked}"
        body = {"context": {"C": str(self._rng.randrange(2))}}
        page = await self._send("ask", "POST", f"{API}/ask", body, {"Idempotency-Key": key})
        if page is not None:
            decision |= page.json()
            if decision["id"] in self._heard.asked:
                self._heard.twice.append(decision["id"])
            self._heard.asked[decision["id"]] = decision["text"]

    async def _tell(self, decision, name, value):
        if decision and name not in decision["arm"]:
            body = {"values": {name: value}}
            if await self._send("tell", "POST", f"{API}/tell/{decision['id']}", body) is not None:
                self._heard.told[decision["id"], name] = value

    async def _look(self):
        kind = self._rng.choice([*LOOKS])
        headers = {"If-None-Match": self._tag} if kind == "status" else {}
        path = LOOKS[kind].replace("{head}", str(max(self._head - 20, 0)))
        page = await self._send(kind, "GET", path, headers=headers)
        if page is not None and kind == "status":
            self._tag = page.headers.get("etag", "")

    async def _send(self, kind, method, path, body=None, headers=None):
        """The answer, whatever happens to the connection; None where it was no good one."""
        end, tries = time.monotonic() + PATIENCE, 0
        while True:
            began, tries = time.monotonic(), tries + 1
            try:
                page = await self._http.request(method, path, json=body, headers=headers)
            except httpx2.TransportError as error:
                if time.monotonic() > end:
                    self._heard.failures.append(f"{kind}: {error!r}")
                    return None
                await asyncio.sleep(0.2)
                continue
            if tries == 1:
                self._heard.seconds.append((kind, time.monotonic() - began))
            else:
                self._heard.repeated += 1
            if page.status_code in (200, 304):
                return page
            self._heard.failures.append(f"{kind}: {page.status_code} {page.text[:200]}")
            return None

    async def _follow(self):
        """The stream of the page that this client has open; a browser opens it anew."""
        while True:
            with contextlib.suppress(httpx2.TransportError):
                async with self._http.stream("GET", f"{API}/stream") as stream:
                    async for line in stream.aiter_lines():
                        if line.startswith("data: "):
                            self._heard.streamed += 1
                            self._head = json.loads(line[6:])["number"]
            await asyncio.sleep(1)


def crowd(store, clients, seconds, seed=0, kills=0):
    """Serve a fresh store to a crowd for so long, not counting the starts after so many kills."""
    with Experiment.create(store, NAME, PROBLEM, seed=1) as experiment:
        storage = experiment._journal.storage
        secrets = [
            tokens.create_token(storage, "ask", f"client {i}").secret for i in range(clients)
        ]
    server, heard = Server(store), Heard()

    async def all_of_them():
        done = asyncio.Event()
        people = [Client(i, server, secret, seed, heard) for i, secret in enumerate(secrets)]
        lives = asyncio.gather(*(one.live(done) for one in people))
        for _ in range(kills):
            await asyncio.sleep(seconds / (kills + 1))
            server.kill()
            await asyncio.to_thread(server.start)
        await asyncio.sleep(seconds / (kills + 1))
        done.set()
        await lives

    try:
        asyncio.run(all_of_them())
    finally:
        said = server.stop()
    if "Traceback" in said:
        heard.failures.append(said)
    return heard


def check_the_journal(store, heard):
    """All that was answered is there, once, and the audit passes; how many decisions and events."""
    with Experiment.open(store) as experiment:
        cases = {case.id: case for case in experiment.records()}
        assert sorted(cases) == sorted(heard.asked), "a decision is lost, or nobody has it"
        assert not heard.twice
        assert {number: str(case.asked) for number, case in cases.items()} == heard.asked
        for (number, name), value in heard.told.items():
            assert cases[number].values[name] == value
        assert sum(len(case.values) for case in cases.values()) == len(heard.told)
        actors = {event.payload["decision"]: event.actor for event in experiment.events(after=1)}
        for number, case in cases.items():
            assert case.request_id.startswith(f"{actors[number]},")
        audit = experiment.audit()
        assert audit.ok, audit.finding
        return len(cases), audit.events
