"""The RQ worker of one executor: what dagward overrides in RQ 3, and the worker's whole life.

RQ brings jobs to a forked process and nothing more. No scheduler, no commands by pub/sub, no callbacks, JSON only.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from types import FrameType

import structlog
from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.executions import Execution
from rq.job import Job
from rq.serializers import JSONSerializer

from scheduler import __version__, death
from scheduler.daemon import own_package
from scheduler.dispatch import QUEUE_PREFIX, AttemptJob
from scheduler.model import Executor
from scheduler.settings import Settings, epoch_file
from scheduler.store import Store, StoreConfig, connect, open_store, preflight, rq_connection
from workers import run, sweep
from workers.desk import DRAIN, HAND_BACK, WORK, Desk, Flag, Line
from workers.renewal import Keeper
from workers.tree import Guard, kill_descendants
from workers.workspace import free_slot

log = structlog.get_logger()

RQ_HEARTBEAT = 20.0


class AttemptWorker(Worker):
    """An RQ worker that renews in its main process and serves one queue of its own."""

    job_class = AttemptJob

    def __init__(self, keeper: Keeper, name: str, config: StoreConfig) -> None:
        connection = rq_connection(config)
        queue = Queue(keeper.executor.queue, connection=connection, job_class=AttemptJob, serializer=JSONSerializer)
        super().__init__(
            [queue],
            name=name,
            connection=connection,
            job_class=AttemptJob,
            serializer=JSONSerializer,
            log_job_description=False,
            worker_ttl=120,
            maintenance_interval=10**9,
        )
        self.keeper = keeper
        self.beaten = 0.0

    def subscribe(self) -> None:
        """No commands by pub/sub: they would miss the guard's tree."""

    def unsubscribe(self) -> None:
        """Nothing was subscribed."""

    def register_death(self) -> None:
        """As RQ, but a server that is gone is not waited for."""
        try:
            self.keeper.store.now()
        except (RedisError, OSError):
            return
        super().register_death()  # type: ignore[no-untyped-call]

    def run_maintenance_tasks(self) -> None:
        """RQ's registries decide nothing here."""

    def procline(self, message: str) -> None:
        """The process keeps its own name."""

    def _install_signal_handlers(self) -> None:
        """TERM: finish, then stop; again, or INT: stop the attempt and hand it back. Installed explicitly."""
        listen_to_signals(self.keeper.desk.flag)

    def dequeue_job_and_maintain_ttl(
        self,
        timeout: int | None,  # noqa: ARG002 -- RQ's shape
        max_idle_time: int | None = None,  # noqa: ARG002 -- RQ's shape
    ) -> tuple[Job, Queue] | None:
        """Say that we are idle, renew, and wait for a job. None: asked to stop."""
        keeper = self.keeper
        wait = min(1.0, keeper.every)
        while keeper.desk.flag.value == WORK:
            if not self._idle():
                continue
            if time.monotonic() - self.beaten > RQ_HEARTBEAT:
                self.beaten = time.monotonic()
                self.heartbeat()
            try:
                _waiting.append(True)
                found = self.queue_class.dequeue_any(
                    self._ordered_queues,
                    wait,  # type: ignore[arg-type]  # BLMOVE takes fractions of a second
                    connection=self.connection,
                    job_class=self.job_class,
                    serializer=self.serializer,
                    death_penalty_class=self.death_penalty_class,
                )
            except DequeueTimeout:
                continue
            finally:
                _waiting.clear()
            if found is not None:
                job, queue = found
                job.redis_server_version = self.get_redis_server_version()  # type: ignore[no-untyped-call]
                return job, queue
        return None

    def _idle(self) -> bool:
        keeper = self.keeper
        keeper.ready()
        try:
            present = keeper.store.present(keeper.desk.session, "idle")
            if not present.alive:
                settings = keeper.desk.settings
                # An emptied store knows no session either; never take it for one that only forgot ours.
                open_store(keeper.store.client, settings.keys, epoch_file(settings))
                log.warning("session.renewed")
                keeper.store.register(keeper.executor)
                return False
        except (RedisError, OSError) as error:
            log.warning("store.away", reason=str(error)[:200])
            time.sleep(min(0.5, keeper.every))
            return False
        keeper.confirmed = time.monotonic()
        keeper.held = ()
        return True

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        """As RQ, with a living guard."""
        self.keeper.ready()
        super().fork_work_horse(job, queue)

    def monitor_work_horse(self, job: Job, queue: Queue, execution: Execution) -> None:
        """Renew while the horse works; when it died, prove its trees gone and settle what it held."""
        status = self.keeper.watch(self._horse_pid)
        self._horse_pid = 0
        self.executions.pop(execution.id, None)
        self.keeper.after(status)
        if status != 0:
            self.handle_job_failure(job, queue=queue, exc_string="the horse died", execution=execution)

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """In the horse: die with main, leave signals to it, then serve."""
        death.follow_parent(self.pid or 0, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().main_work_horse(job, queue)

    def setup_work_horse_signals(self) -> None:
        """Main alone is signalled; it stops the horse."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


_waiting: list[bool] = []
"""Not empty while an idle worker waits for a job, which is also where it would wait for a server that is gone."""


def listen_to_signals(flag: Flag) -> None:
    """Raise the flag; the loops look at it, and an idle wait ends. Nothing is sent from a signal handler."""

    def on_signal(number: int, _: FrameType | None) -> None:
        flag.set(HAND_BACK if number == signal.SIGINT or flag.value >= DRAIN else DRAIN)
        if _waiting:
            _waiting.clear()
            raise StopRequested  # a job popped at this very moment goes back at its dispatch deadline

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)


def host_name() -> str:
    """This host, as workers register it."""
    return socket.gethostname()


def serve(settings: Settings, *, pool: str, name: str, plan: str = "") -> int:
    """One worker from sweep to clean end. Returns an exit code."""
    own_package()
    death.adopt_orphans()
    flag = Flag()
    listen_to_signals(flag)
    config = settings.store_config()
    patient = connect(config)
    for warning in preflight(patient, config):
        log.warning("store.warned", warning=warning)
    open_store(patient, settings.keys, epoch_file(settings))
    store = Store(patient, settings.keys, settings.timing)
    session = secrets.token_hex(6)
    state = settings.state_dir
    sweep_host(settings, store)
    slot = free_slot(state)
    guard = Guard.spawn(frozen_limit=settings.frozen_limit / 1000, leader_file=sweep.leader_file(state, session))
    sweep.register(state, session, guard.pid)
    desk = Desk(
        settings=settings,
        session=session,
        name=name,
        host=host_name(),
        flag=flag,
        line=Line(),
        guard=guard,
        slot=slot,
    )
    executor = Executor(
        session=session,
        name=name,
        host=desk.host,
        pid=os.getpid(),
        pool=pool,
        queue=f"{QUEUE_PREFIX}{session}",
        plan=plan,
        agents=("command", "python"),
        version=__version__,
    )
    impatient = connect(config, patient=False, timeout=max(settings.timing.renewal / 1000, 0.1))
    keeper = Keeper(desk, Store(impatient, settings.keys, settings.timing), executor)
    store.register(executor)
    patient.close()
    run.sit(desk)
    worker = AttemptWorker(keeper, f"{name}-{session}", config)
    log.info("worker.started", pool=pool, session=session, worker=name)
    try:
        worker.work(logging_level="WARNING")
    finally:
        _leave(desk, keeper.store)
    return 0


def sweep_host(settings: Settings, store: Store) -> None:
    """Before anything starts here: kill what dead workers of this host left, then tell the store that it is gone."""
    for swept in sweep.sweep(settings.state_dir):
        log.warning("host.swept", session=swept.session, killed=swept.killed, survivors=swept.survivors)
        if swept.survivors:
            log.error("process.unkillable", session=swept.session, survivors=swept.survivors)
            continue
        taken = store.recover(swept.session, "", swept=True)
        if taken:
            log.info("session.recovered", session=swept.session, tasks=taken)
        sweep.forget(settings.state_dir, swept.session)


def _leave(desk: Desk, store: Store) -> None:
    """Clean end: the guard proves everything gone, the session ends with nothing held.

    `store` is impatient: without a server the session stays written down, and what starts here next sweeps it.
    """
    desk.guard.quit()
    kill_descendants()
    try:
        store.present(desk.session, "draining")
        store.recover(desk.session, "", swept=True)
    except (RedisError, OSError) as error:
        log.warning("session.left_open", reason=str(error)[:200])
        return
    sweep.unregister(desk.settings.state_dir, desk.session)
    log.info("worker.stopped", session=desk.session)
