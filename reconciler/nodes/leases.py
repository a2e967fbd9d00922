"""The lease of a node over SSH: the program that holds it, and the conversation with it."""

import asyncio
import contextlib
import hashlib
import itertools
import json
from dataclasses import asdict
from typing import Any

import asyncssh

from reconciler.core.leases import NOBODY_KNOWN, Claim, Holder
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.errors import ErrorKind, LeaseHeldError, LeaseLostError, NodeError
from reconciler.nodes.lease_program import BEAT_S, MARK, Verb, script
from reconciler.nodes.lease_troubles import trouble
from reconciler.nodes.openssh import login_command
from reconciler.nodes.ssh import EXEC_ENV, SshSession

ANSWER_S = 20.0
CHECK_S = 10.0
"""Less than the time in which a lease lapses."""

RELEASE_S = 1.0
KEY_LENGTH = 16
LONGEST_WORDS = 200
"""Characters of each part of a claim that are kept on the node."""


class SshLeases:
    """The lease of one node's Docker engine."""

    def __init__(self, session: SshSession, engine: DockerEngine) -> None:
        self._session = session
        self._engine = engine
        self._key = ""

    async def take(self, claim: Claim) -> "SshLease":
        """The lease. Raises `LeaseHeldError` when another claim has it."""
        program = await self._start("take", _note(claim, self._session.target.name))
        try:
            word, rest = await self._answer(program)
        except BaseException:
            program.close()
            raise
        if word == "held":
            raise LeaseHeldError(self._session.target.name, _holder(rest))
        fence, boot_id, former = rest.split()
        return SshLease(self._session, program, int(fence), boot_id, follows_another=former == "other")

    async def holder(self) -> Holder | None:
        """Who has it now."""
        return await self._asked("look")

    async def break_held(self) -> Holder | None:
        """End the lease, whoever has it; who had it."""
        return await self._asked("break")

    async def _asked(self, verb: Verb) -> Holder | None:
        program = await self._start(verb)
        try:
            word, rest = await self._answer(program)
        finally:
            program.close()
        return None if word == "free" else _holder(rest)

    async def _start(self, verb: Verb, claim: str = "") -> "asyncssh.SSHClientProcess[str]":
        target = self._session.target
        text = script(verb, await self._engine_key(), target.docker_socket, claim)
        command = login_command(f'eval "$(head -c {len(text)})"')
        try:
            async with asyncio.timeout(ANSWER_S):
                process = await self._session.connection.create_process(
                    command, env=EXEC_ENV, errors="replace", stderr=asyncssh.DEVNULL
                )
        except TimeoutError:
            raise self._late() from None
        except (asyncssh.Error, OSError) as error:
            if await self._session.is_ending():
                raise self._session.lost("asking for its lease") from error
            raise NodeError(ErrorKind.REFUSED, f"sshd on {target.host} refused to run a program: {error}") from error
        process.stdin.write(text)
        return process

    async def _engine_key(self) -> str:
        """Names the lock: the same for all names and users of one Docker engine."""
        if not self._key:
            info = await self._engine.get("/info")
            identity = str(info.get("ID") or self._session.target.docker_socket)
            self._key = hashlib.sha256(identity.encode()).hexdigest()[:KEY_LENGTH]
        return self._key

    async def _answer(self, program: "asyncssh.SSHClientProcess[str]") -> tuple[str, str]:
        """The first thing that the program says: a word, and the rest of the line. Raises `NodeError`."""
        try:
            async with asyncio.timeout(ANSWER_S):
                said = await _next_line(program)
        except TimeoutError:
            raise self._late() from None
        if said is None:
            if await self._session.is_ending():
                raise self._session.lost("asking for its lease")
            place = f"{self._session.target.login} on {self._session.target.host}"
            raise NodeError(ErrorKind.REFUSED, f"the program for the lease ended without a word, for {place}")
        word, _, rest = said.partition(" ")
        if word == "error":
            raise trouble(self._session.target, rest)
        return word, rest

    def _late(self) -> NodeError:
        message = f"{self._session.target.name} did not answer within {ANSWER_S:g} s when asked for its lease"
        return NodeError(ErrorKind.TIMEOUT, message, "is it overloaded, or a start-up file of the login shell slow?")


class SshLease:
    """A lease that is held for as long as its program answers. It beats by itself."""

    def __init__(
        self,
        session: SshSession,
        program: "asyncssh.SSHClientProcess[str]",
        fence: int,
        boot_id: str,
        *,
        follows_another: bool,
    ) -> None:
        self.fence = fence
        self.boot_id = boot_id
        self.follows_another = follows_another
        self._session = session
        self._program = program
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[None]] = {}
        self._ended = asyncio.Event()
        self._hearing = asyncio.create_task(self._hear())
        self._beating = asyncio.create_task(self._beat())

    async def check(self) -> None:
        """Prove by a round trip that it is held right now. Raises `LeaseLostError`, or `NodeError` of transport."""
        number = next(self._numbers)
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            async with asyncio.timeout(CHECK_S):
                self._tell(str(number))
                await answer
        except TimeoutError:
            message = f"the lease of {self._session.target.name} was not confirmed within {CHECK_S:g} s"
            raise NodeError(ErrorKind.TIMEOUT, message) from None
        except ConnectionError:
            raise await self._why() from None
        finally:
            self._asked.pop(number, None)

    async def release(self) -> None:
        """Give it back. Never raises; no effect when it is lost or released already."""
        self._beating.cancel()
        try:
            async with asyncio.timeout(RELEASE_S):
                self._tell("release")
                await self._ended.wait()
        except (TimeoutError, ConnectionError):
            return
        finally:
            self._hearing.cancel()
            self._ended.set()
            self._program.close()

    def _tell(self, word: str) -> None:
        """Raises `ConnectionError` when nobody is there any more."""
        if self._ended.is_set():
            raise ConnectionResetError
        try:
            self._program.stdin.write(f"{word}\n")
        except (asyncssh.Error, OSError) as error:
            raise ConnectionResetError from error

    async def _hear(self) -> None:
        """Pass on the program's answers, until it ends."""
        try:
            while (said := await _next_line(self._program)) is not None:
                word, _, number = said.partition(" ")
                answer = self._asked.get(int(number)) if word == "beat" else None
                if answer is not None and not answer.done():
                    answer.set_result(None)
        finally:
            self._ended.set()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(ConnectionResetError())
            self._beating.cancel()

    async def _beat(self) -> None:
        """Keep the lease. A beat that gets no answer is told to whoever checks next."""
        while True:
            await asyncio.sleep(BEAT_S)
            with contextlib.suppress(NodeError):
                await self.check()

    async def _why(self) -> NodeError:
        if await self._session.is_ending():
            return self._session.lost("checking its lease")
        return LeaseLostError(f"the lease of {self._session.target.name} has ended")


async def _next_line(program: "asyncssh.SSHClientProcess[str]") -> str | None:
    """The next thing the program says, whatever else is on its output; None when it has ended."""
    with contextlib.suppress(asyncssh.Error, OSError):
        while line := await program.stdout.readline():
            if line.startswith(MARK) and line.endswith("\n"):
                return str(line.removeprefix(MARK).rstrip("\n"))
    return None


def _note(claim: Claim, node: str) -> str:
    """The claim as the node keeps it, on one line. With the node's name: two names of one machine are two claims."""
    words = {name: value[:LONGEST_WORDS] for name, value in asdict(claim).items()}
    return json.dumps(words | {"node": node}, sort_keys=True)


def _holder(rest: str) -> Holder:
    """From "FENCE AGE CLAIM"; a damaged note has neither."""
    fence, age, *note = rest.split(" ", 2)
    if fence == "-":
        return Holder(NOBODY_KNOWN, 0, None)
    return Holder(_claim("".join(note)), int(fence), max(0.0, float(age)))


def _claim(note: str) -> Claim:
    try:
        found: dict[str, Any] = json.loads(note)
        return Claim(*(_plain(str(found[name])) for name in ("owner", "purpose", "run_id")))
    except (ValueError, KeyError, TypeError):
        return NOBODY_KNOWN


def _plain(text: str) -> str:
    """Text of somebody else's on one line, and nothing in it that moves a cursor."""
    return "".join(char if char.isprintable() else "?" for char in text[:LONGEST_WORDS])
