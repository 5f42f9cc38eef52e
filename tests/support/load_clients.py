"""Load test of a server: clients that ask, tell and query about once per second, and kills.

The command `dowise serve` runs in its own process, the clients as asyncio tasks in this one. Every
client has a token and an open stream of server-sent events, and records its responses. If a
connection breaks, the request is repeated with the same Idempotency-Key until it is answered.
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
QUERIES = {
    "status": f"{API}/status",
    "status in a context": f'{API}/status?context={{"C":"1"}}&tolerance=0.01',
    "the page Now": f"{PAGES}/now",
    "the page What we know": f"{PAGES}/known",
    "events": f"{API}/events?limit=50&after={{head}}",
    "pending": f"{API}/decisions?status=pending",
}
TIMEOUT = 120.0  # seconds for a start, and for a response after a kill


class ServerProcess:
    """`dowise serve` on a store; it can be killed and started again at the same port."""

    def __init__(self, store):
        self._store, self._port = store, 0
        self.address = ""
        self.start()

    def start(self):
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-m", "dowise", "serve", str(self._store), "--json"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    def _wait(self):
        document = "".join(iter(lambda: self._line(), "}\n")) + "}"
        self.address = json.loads(document)["url"]
        self._port = int(self.address.rpartition(":")[2])
        end = time.monotonic() + TIMEOUT
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
        """Kill the server."""
        self._process.kill()
        self._process.communicate()

    def stop(self):
        """Stop the server, and return its stderr."""
        self._process.terminate()
        return self._process.communicate(timeout=TIMEOUT)[1].decode()


@dataclass
class LoadReport:
    """Responses to all clients, and how long they took."""

    seconds: list[tuple[str, float]] = field(default_factory=list)
    """Kind and duration of each request that was not repeated."""
    failures: list[str] = field(default_factory=list)
    """Unexpected responses."""
    repeated: int = 0
    """Number of requests that were repeated, because the connection broke."""
    asked: dict[int, str] = field(default_factory=dict)
    """Arm of each decision."""
    twice: list[int] = field(default_factory=list)
    """Decisions that were returned to two requests."""
    told: dict[tuple[int, str], str] = field(default_factory=dict)
    streamed: int = 0
    """Number of events from streams."""


class LoadClient:
    """A client that sends about one request per second."""

    def __init__(self, number, server, secret, seed, report):
        self._number, self._report = number, report
        self._rng, self._asked = random.Random(f"{seed} {number}"), 0
        self._head, self._tag = 0, ""
        self._http = httpx2.AsyncClient(
            base_url=server.address,
            headers={"Authorization": f"Bearer {secret}"},
            timeout=TIMEOUT,
        )

    async def run(self, done):
        """Ask, tell and query about once per second until `done` is set."""
        stream = asyncio.create_task(self._follow())
        try:
            await asyncio.sleep(self._rng.random())
            for step in self._steps():
                start = time.monotonic()
                if done.is_set():
                    break
                await step()
                await asyncio.sleep(max(start + 1 - time.monotonic(), 0))
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
                yield self._query
                value = str(self._rng.randrange(2))
                yield lambda decision=decision, n=name, v=value: self._tell(decision, n, v)
            yield self._query

    async def _ask(self, decision):
        self._asked += 1
        key = f"client {self._number}, {self._asked}"
        body = {"context": {"C": str(self._rng.randrange(2))}}
        response = await self._send("ask", "POST", f"{API}/ask", body, {"Idempotency-Key": key})
        if response is not None:
            decision |= response.json()
            if decision["id"] in self._report.asked:
                self._report.twice.append(decision["id"])
            self._report.asked[decision["id"]] = decision["text"]

    async def _tell(self, decision, name, value):
        if decision and name not in decision["arm"]:
            body = {"values": {name: value}}
            if await self._send("tell", "POST", f"{API}/tell/{decision['id']}", body) is not None:
                self._report.told[decision["id"], name] = value

    async def _query(self):
        kind = self._rng.choice([*QUERIES])
        headers = {"If-None-Match": self._tag} if kind == "status" else {}
        path = QUERIES[kind].replace("{head}", str(max(self._head - 20, 0)))
        response = await self._send(kind, "GET", path, headers=headers)
        if response is not None and kind == "status":
            self._tag = response.headers.get("etag", "")

    async def _send(self, kind, method, path, body=None, headers=None):
        """Return the response, whatever happens to the connection; None if it is an error."""
        end, tries = time.monotonic() + TIMEOUT, 0
        while True:
            start, tries = time.monotonic(), tries + 1
            try:
                response = await self._http.request(method, path, json=body, headers=headers)
            except httpx2.TransportError as error:
                if time.monotonic() > end:
                    self._report.failures.append(f"{kind}: {error!r}")
                    return None
                await asyncio.sleep(0.2)
                continue
            if tries == 1:
                self._report.seconds.append((kind, time.monotonic() - start))
            else:
                self._report.repeated += 1
            if response.status_code in (200, 304):
                return response
            self._report.failures.append(f"{kind}: {response.status_code} {response.text[:200]}")
            return None

    async def _follow(self):
        """Read the stream of events, and open it again as browsers do."""
        while True:
            with contextlib.suppress(httpx2.TransportError):
                async with self._http.stream("GET", f"{API}/stream") as stream:
                    async for line in stream.aiter_lines():
                        if line.startswith("data: "):
                            self._report.streamed += 1
                            self._head = json.loads(line[6:])["number"]
            await asyncio.sleep(1)


def run_load(store, number, seconds, seed=0, kills=0):
    """Serve a new store to clients for some seconds, without the starts after kills."""
    with Experiment.create(store, NAME, PROBLEM, seed=1) as experiment:
        storage = experiment._journal.storage
        secrets = [tokens.create_token(storage, "ask", f"client {i}").secret for i in range(number)]
    server, report = ServerProcess(store), LoadReport()

    async def run_clients():
        done = asyncio.Event()
        clients = [LoadClient(i, server, secret, seed, report) for i, secret in enumerate(secrets)]
        runs = asyncio.gather(*(client.run(done) for client in clients))
        for _ in range(kills):
            await asyncio.sleep(seconds / (kills + 1))
            server.kill()
            await asyncio.to_thread(server.start)
        await asyncio.sleep(seconds / (kills + 1))
        done.set()
        await runs

    try:
        asyncio.run(run_clients())
    finally:
        log = server.stop()
    if "Traceback" in log:
        report.failures.append(log)
    return report


def check_journal(store, report):
    """Check that every confirmed write is stored once; count decisions and events."""
    with Experiment.open(store) as experiment:
        cases = {case.id: case for case in experiment.records()}
        assert sorted(cases) == sorted(report.asked), "decisions were lost, or not confirmed"
        assert not report.twice
        assert {number: str(case.asked) for number, case in cases.items()} == report.asked
        for (number, name), value in report.told.items():
            assert cases[number].values[name] == value
        assert sum(len(case.values) for case in cases.values()) == len(report.told)
        actors = {event.payload["decision"]: event.actor for event in experiment.events(after=1)}
        for number, case in cases.items():
            assert case.request_id.startswith(f"{actors[number]},")
        audit = experiment.audit()
        assert audit.ok, audit.finding
        return len(cases), audit.events
