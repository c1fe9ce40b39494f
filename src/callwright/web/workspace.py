"""The app that the pages about tools, rules, servers and skills use: without a model, rebuilt when settings change."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from callwright.app.app import App
from callwright.app.costs import prices_in
from callwright.app.locations import Locations
from callwright.app.settings import SettingsWatch
from callwright.core.errors import UsageError
from callwright.providers.pricing import Prices
from callwright.registry import Registry, Toolset


class OpenBareApp(Protocol):
    """Builds an app without a model and without stored sessions."""

    def __call__(
        self, *, mode: str = "", allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()
    ) -> App: ...


class WebWorkspace:
    """Holds the app without a model.

    Args:
        locations: The project.
        open_bare: Builds the app.
    """

    def __init__(self, locations: Locations, open_bare: OpenBareApp) -> None:
        self.locations = locations
        self.open_bare = open_bare
        self._watch = SettingsWatch(locations)
        self._app: App | None = None
        self._entered = False
        self._lock = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether the MCP servers were started."""
        return self._entered

    async def app(self) -> App:
        """Return the app of the settings as they are now; if they changed, servers that were started are started again.

        Raises:
            UsageError: The settings are not valid.
        """
        async with self._lock:
            changed = self._watch.changes()  # also where there is no app: it is built with these changes
            if self._app is not None and not changed:
                return self._app
            entered = self._entered
            await self._close()
            self._app = await asyncio.to_thread(self.open_bare)
            return await self._enter(self._app) if entered else self._app

    async def toolset(self) -> Toolset:
        """Return the tools, for what describes a call; none if the settings are not valid."""
        try:
            return (await self.app()).executor.registry
        except UsageError:
            return Registry()

    async def connect(self) -> App:
        """Return the app with its MCP servers started."""
        app = await self.app()
        async with self._lock:
            if not self._entered and self._app is app:
                await self._enter(app)
        return app

    async def _enter(self, app: App) -> App:
        await app.__aenter__()
        self._entered = True
        return app

    async def prices(self) -> Callable[[str], Prices | None]:
        """Return a function that finds the prices of a model; built-in prices if the settings are not valid."""
        try:
            settings = (await self.app()).settings
        except UsageError:
            from callwright.providers.pricing import prices_for

            return prices_for
        return lambda model: prices_in(settings, model)

    async def aclose(self) -> None:
        """Stop the servers."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        app, self._app, entered, self._entered = self._app, None, self._entered, False
        if app is None:
            return
        with suppress(Exception):  # a server that does not end must not keep the page from its settings
            await (app.__aexit__(None, None, None) if entered else asyncio.to_thread(app.close))
