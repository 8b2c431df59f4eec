"""The server goes away for three leases while an agent holds an open stream. Fault 9, I1: frozen, thawed, never failed."""

from __future__ import annotations

import signal
import socket
import threading

from tests.conftest import wait_until
from tests.run_kit import LEASE, Place

PLAN = """
name: outage
goal: Outlive the server.
defaults: {{retries: {{max: 0}}}}
tasks:
  - id: stream
    agent:
      use: python
      call: "outage_agent:listen"
    env: {{set: {{PORT: "{port}", PYTHONPATH: "{folder}"}}}}
    verify: [{{outputs: {{schema: {{required: [bytes]}}}}}}]
"""

AGENT = """
import os, socket

def listen(context):
    with socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), timeout=60) as stream:
        stream.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        count = 0
        while data := stream.recv(4096):
            count += len(data)
    return {"bytes": count}
"""


def test_t06_an_outage_of_three_leases_fails_nothing(place: Place) -> None:
    (place.folder / "outage_agent.py").write_text(AGENT)
    release = threading.Event()
    connections: list[int] = []

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(1000)
                connections.append(1)
                client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                release.wait(60)
                client.sendall(b"x" * 1000)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        process = place.start("run", str(place.plan(PLAN.format(port=port, folder=place.folder))))
        wait_until(lambda: connections, "the agent's connection", 30)
        (server,) = place.servers()
        server.send_signal(signal.SIGSTOP)
        agents = place.named(r"workers\.agents\.child")
        assert agents
        wait_until(lambda: all(a.status() == "stopped" for a in agents), "the agent to be frozen", LEASE / 1000 * 4)
        threading.Event().wait(LEASE / 1000 * 3)  # the length of the outage is what is tested: no predicate ends it
        server.send_signal(signal.SIGCONT)
        release.set()
        code, out = place.finish(process)
    assert code == 0, out
    assert "failed" not in out
    assert "lost" not in out
    place.nothing_left()


def test_t03_a_frozen_worker_is_fenced_when_it_comes_back(place: Place) -> None:
    """Fault 3: SIGSTOP worker and horse for more than a lease, then SIGCONT: one accepted, the late one refused."""
    plan = place.plan("""
name: frozen
goal: One winner.
concurrency: 2
defaults: {retries: {max: 3, backoff: 50ms}}
tasks:
  - {id: pad, agent: {use: command, run: "echo x > f"}}
  - id: a
    agent: {use: command, run: "echo $$ >> ../../../../a.ran; while [ ! -e ../../../../go ]; do sleep 0.05; done; echo x > f"}
""")
    process = place.start("run", str(plan))
    place.appears("a.ran")
    views = place.views()
    (session,) = [t.session for t in views.tasks(views.find("frozen")) if t.task == "a"]
    (owner,) = [w for w in views.workers() if any(" a" in a for a in w.attempts)]
    main = next(p for p in place.workers() if p.pid == owner.pid)
    family = [main, *[c for c in main.children() if "workers" in " ".join(c.cmdline())]]
    for member in family:
        member.send_signal(signal.SIGSTOP)
    wait_until(lambda: place.lines("a.ran") == 2, "the second attempt", 30)
    for member in family:
        member.send_signal(signal.SIGCONT)
    (place.folder / "go").touch()
    code, out = place.finish(process)
    assert code == 0, out
    assert session
    place.nothing_left()
