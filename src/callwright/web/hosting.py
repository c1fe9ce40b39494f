"""Sessions that the server itself runs: new ones from the page, and those whose process has ended."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol

from callwright.agent.results import AgentEvent, Stopped
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.live import LiveAgent
from callwright.app.live_client import Tell
from callwright.app.locations import Locations
from callwright.core.calls import Answers, Question, Reply
from callwright.core.errors import CallwrightError, UsageError, describe_exception
from callwright.core.events import Event
from callwright.providers.base import Provider
from callwright.providers.streaming import TappedProvider
from callwright.tool.base import Cancellation
from callwright.toolbox.bash.jobs import ShellSession

_log = logging.getLogger("callwright")
_MODES = ("default", "auto", "plan")
_QUIET_SECONDS = 1_800.0
"""How long a session does nothing, and no page reads it, before its app is closed."""
_LOOK_SECONDS = 60.0
_MOST_MODES = 1_000


class OpenApp(Protocol):
    """Builds an app with a model, as the command line asks for it."""

    def __call__(
        self,
        *,
        report: Callable[[str], None],
        wrap: Callable[[Provider], Provider],
        observe: Callable[[Event], None],
    ) -> App: ...


class HostedSession:
    """One session that this process runs; its questions are answered through its live socket, like any other's.

    Args:
        locations: The project.
        open_app: Builds the app.
        session_id: The session to begin or continue.
        source: `startup` for a new session, else `resume`.
        publish: Passes an event to every page.
        mode: The permission mode that a page chose earlier; empty for that of the settings.
    """

    def __init__(
        self, locations: Locations, open_app: OpenApp, session_id: str, source: str, publish: Tell, mode: str = ""
    ) -> None:
        self.session_id = session_id
        self.chosen_mode = mode
        self._publish = publish
        self.live = LiveAgent(locations.live, "page")
        self._open_app = open_app
        self._source = source
        self._prompts: asyncio.Queue[str | Answers | None] = asyncio.Queue()
        self._replies: dict[str, Reply] = {}
        """Answers to questions on record, for the run that resumes the session."""
        self._lost: list[Callable[[], Awaitable[None]]] = []
        """Told if the session cannot be resumed, so that the answers count nowhere."""
        self._cancellation: Cancellation | None = None
        self._app: App | None = None
        self._finishing = False
        self._used_at = 0.0
        self._telling: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Build the app and open the live socket; several callers may wait for it.

        Raises:
            CallwrightError: There is no model, the settings are not valid, or the session was closed meanwhile.
        """
        if self._ready is None:
            self._loop = asyncio.get_running_loop()
            self._ready = self._loop.create_future()
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(lambda _: self._end_start())
        await asyncio.shield(self._ready)

    @property
    def started(self) -> bool:
        """Whether its app has been built."""
        return self._ready is not None and self._ready.done()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._task is None or self._task.done()

    def touch(self) -> None:
        """Note that a page reads the session, or that something happens in it."""
        self._used_at = asyncio.get_running_loop().time()

    def is_quiet(self, seconds: float) -> bool:
        """Whether it has done nothing for some time, and nothing of it would be lost: no prompt, question or job."""
        if not self.started or self.over or self._app is None or self._cancellation is not None:
            return False
        if not self._prompts.empty() or self.live.state != "idle" or self._telling:
            return False
        shell = ShellSession.of(self._app.agent.state(self.session_id), self.session_id)
        if not all(job.settled for job in shell.jobs):
            return False  # commands in the background, whose output is read later
        return asyncio.get_running_loop().time() - self._used_at >= seconds

    async def finish(self) -> None:
        """End a quiet session: its app is closed, and the next prompt opens it again from its record."""
        self._finishing = True
        self._prompts.put_nowait(None)
        if self._task is not None:
            await asyncio.wait({self._task})

    def say(self, text: str) -> None:
        """Run a prompt, after those that wait already.

        Raises:
            UsageError: The session is being closed, and would not run it.
        """
        if self._finishing:
            raise UsageError("this session is being closed, because it was not used for some time; send it again")
        self._prompts.put_nowait(text)

    def go_on(self) -> None:
        """Resume the session."""
        self._prompts.put_nowait(Answers())

    def answer(self, question_id: str, reply: Reply, lost: Callable[[], Awaitable[None]]) -> None:
        """Resume the session with the answer to a question on record; a run that goes on already takes it too.

        `lost` is called if the session cannot be resumed.
        """
        self._lost.append(lost)
        if self._cancellation is not None:
            self.live.questions.settle_again(question_id, reply, "page")
            return
        if not self._replies:
            self.go_on()
        self._replies[question_id] = reply

    def stop(self) -> bool:
        """Stop the run, and take back the prompts that wait for its end; False if none is going on."""
        if self._cancellation is None:
            return False
        waiting = [self._prompts.get_nowait() for _ in range(self._prompts.qsize())]
        for each in waiting:
            if isinstance(each, str):  # a user who stops a run does not want the next one to begin
                self._report(f"not run, because the run before was stopped: {each}")
            else:
                self._prompts.put_nowait(each)
        self._cancellation.cancel("stopped on the page")
        return True

    async def aclose(self) -> None:
        """Stop the run; a session that waits for an answer stays paused on record."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        live, ready = self.live, self._ready
        assert ready is not None
        try:
            tap = partial(TappedProvider, tell=live.on_model_event)
            app = await asyncio.to_thread(self._open_app, report=self._report, wrap=tap, observe=live.observe)
            async with app, live:
                if self.chosen_mode:
                    _switch_mode(app, self.chosen_mode)
                self._app = app
                live.show_app(app)
                live.say, live.stop = self.say, self.stop
                live.set_mode = partial(self._choose_mode, app)
                live.open_session(self.session_id)
                self.touch()
                ready.set_result(None)
                await self._serve(app)
        except CallwrightError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - the page is told
            _log.exception("a session of the page failed")
            self._fail(CallwrightError(describe_exception(error)))

    def _choose_mode(self, app: App, mode: str) -> None:
        _switch_mode(app, mode)
        self.chosen_mode = mode

    def _end_start(self) -> None:
        """Release those who wait for the start of a session that was cancelled, also before its first step."""
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(CallwrightError("the session was closed while it started"))

    def _fail(self, error: CallwrightError) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)
        else:
            self._report(str(error))

    async def _serve(self, app: App) -> None:
        conversation = Conversation(app, self.session_id, self._source)
        app.agent.ask = partial(self._ask, conversation)
        try:
            await self._run_prompts(conversation)
        finally:
            for task in [*self._telling]:
                task.cancel()
            await conversation.end()

    async def _ask(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        """Show questions on the pages, and tell the Notification hooks meanwhile."""
        telling = asyncio.create_task(conversation.notify(questions[0].summary))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)
        return await self.live.questions.ask(questions)

    async def _run_prompts(self, conversation: Conversation) -> None:
        while (given := await self._prompts.get()) is not None:
            self._cancellation = Cancellation()
            try:
                if isinstance(given, str):
                    await self._follow(conversation.say(given, cancellation=self._cancellation))
                else:
                    replies, self._replies = self._replies, {}
                    answers = Answers(replies) if replies else None
                    await self._follow(conversation.go_on(answers, cancellation=self._cancellation))
            except Exception as error:
                for tell in self._lost:
                    await tell()
                if not isinstance(error, CallwrightError):
                    raise
                self._report(str(error))
            finally:
                self._cancellation = None
                self.touch()
                self.live.questions.forget_early()
                if not self._replies:  # otherwise the next run takes them
                    self._lost.clear()

    async def _follow(self, stream: AsyncGenerator[AgentEvent, None]) -> None:
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, Stopped):
                    self._report(f"stopped: {event.reason}")

    def _report(self, text: str) -> None:
        """Tell the pages; called from any thread."""
        self._loop.call_soon_threadsafe(self._notice, text)

    def _notice(self, text: str) -> None:
        """Tell the pages; directly if this server does not follow the session yet, which it does after a moment."""
        if self.live.followed:
            self.live.notice(text)
        else:
            self._publish({"type": "notice", "session": self.session_id, "text": text})


def _switch_mode(app: App, mode: str) -> None:
    if mode not in _MODES:  # the page must not switch the questions off
        raise UsageError(f"expected the mode {', '.join(_MODES)}, got {mode!r}")
    app.switch.mode = mode


class Hosts:
    """The sessions that the server runs.

    Args:
        locations: The project.
        open_app: Builds an app with a model.
        publish: Passes an event to every page.
    """

    def __init__(self, locations: Locations, open_app: OpenApp, publish: Tell) -> None:
        self._locations = locations
        self._publish = publish
        self._open_app = open_app
        self._hosted: dict[str, HostedSession] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._modes: dict[str, str] = {}
        """The modes that pages chose for sessions which were closed since."""
        self._watching: asyncio.Task[None] | None = None

    async def open(self, session_id: str | None) -> HostedSession:
        """Return the host of a session; without an id, of a new session.

        Raises:
            CallwrightError: There is no model, or the settings are not valid.
        """
        self._hosted = {each_id: each for each_id, each in self._hosted.items() if not each.over}
        if (ending := self._ending.get(session_id or "")) is not None:
            await asyncio.wait({ending})  # two apps must not serve one session
        if self._watching is None:
            self._watching = asyncio.create_task(self._end_quiet_sessions())
        hosted = self._hosted.get(session_id or "")
        if hosted is None:
            source = "startup" if session_id is None else "resume"
            new_id = session_id or str(uuid.uuid4())
            mode = self._modes.get(new_id, "")
            hosted = HostedSession(self._locations, self._open_app, new_id, source, self._publish, mode)
            self._hosted[new_id] = hosted  # before it has started: two tabs that speak at once share one host
        await hosted.start()
        return hosted

    def find(self, session_id: str) -> HostedSession | None:
        """Return the host of a session, if this process runs it."""
        hosted = self._hosted.get(session_id)
        return None if hosted is None or hosted.over or not hosted.started else hosted

    def touch(self, session_id: str) -> None:
        """Note that a page reads a session."""
        if (hosted := self._hosted.get(session_id)) is not None:
            hosted.touch()

    async def _end_quiet_sessions(self) -> None:
        """Close the apps of sessions that were not used for some time: each has connections, tools and a history."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for session_id, hosted in [*self._hosted.items()]:
                if hosted.is_quiet(_QUIET_SECONDS):
                    del self._hosted[session_id]
                    self._keep_mode(session_id, hosted.chosen_mode)
                    task = self._ending[session_id] = asyncio.create_task(hosted.finish())
                    task.add_done_callback(lambda _, each=session_id: self._ending.pop(each, None))

    def _keep_mode(self, session_id: str, mode: str) -> None:
        if mode:
            self._modes.pop(session_id, None)
            self._modes[session_id] = mode
        if len(self._modes) > _MOST_MODES:
            del self._modes[next(iter(self._modes))]

    def is_ending(self, session_id: str) -> bool:
        """Whether the app of a session is being closed; `open` waits for it."""
        return session_id in self._ending

    async def close_session(self, session_id: str) -> None:
        """Stop running a session."""
        self._modes.pop(session_id, None)
        if (ending := self._ending.get(session_id)) is not None:
            await asyncio.wait({ending})  # a session that is deleted next must not be written afterwards
        hosted = self._hosted.pop(session_id, None)
        if hosted is not None:
            await hosted.aclose()

    async def aclose(self) -> None:
        """Stop running all sessions."""
        if self._watching is not None:
            self._watching.cancel()
        closing = [hosted.aclose() for hosted in self._hosted.values()]
        await asyncio.gather(*self._ending.values(), *closing)  # at once: each may run hooks
