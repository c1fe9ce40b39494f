"""The folders the user trusts, and exactly which requests of their files."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from callwright.app.locations import Locations
from callwright.app.settings import Repository, Settings, load_settings
from callwright.app.skills.grants import fingerprints
from callwright.core.errors import UsageError
from callwright.core.json import canonical, hash_text
from callwright.system.atomic_write import replace_file


@dataclass(frozen=True, slots=True)
class TrustReview:
    """What a project's files request, read once: what the user sees is what trust is given for."""

    repository: Repository
    requests: tuple[str, ...]
    digest: str
    own_digest: str = ""
    """Of the user's settings of Claude Code; empty if they request nothing."""

    @classmethod
    def of(cls, repository: Repository) -> "TrustReview":
        """Describe what was read."""
        own = repository.own
        own_digest = hash_text(canonical([own.source, own.content])) if own is not None else ""
        requests = (*repository.requests, *repository.own_requests)
        return cls(repository, requests, _digest(repository), own_digest if repository.own_requests else "")


class Trust:
    """The user's trust in one project.

    It covers what the files requested when it was given; a new request needs a new decision.
    """

    def __init__(self, locations: Locations) -> None:
        self._file = locations.trust
        self._locations = locations

    def review(self) -> TrustReview:
        """Read the project's files, to show what they request and to trust exactly that."""
        return TrustReview.of(Repository.at(self._locations))

    def covers(self, review: TrustReview) -> bool:
        """Whether files that were read request nothing, or exactly what the user agreed to."""
        # compared by content, not by time: a checkout that restores the files restores the trust
        return not review.repository.requests or self._folders().get(str(self._locations.project)) == review.digest

    def covers_own(self, review: TrustReview) -> bool:
        """Whether the user's settings of Claude Code request nothing, or exactly what the user agreed to."""
        return not review.own_digest or self._folders().get(self._own_key) == review.own_digest

    @property
    def _own_key(self) -> str:
        return str(self._locations.claude)

    @property
    def requests(self) -> tuple[str, ...]:
        """What the project's files request, as text; empty if there is nothing to trust."""
        return self.review().requests

    @property
    def given(self) -> bool:
        """Whether the project requests nothing, or exactly what the user agreed to."""
        return self.covers(self.review())

    @property
    def complete(self) -> bool:
        """Whether the user agreed to every request, also to those of their own settings of Claude Code."""
        review = self.review()
        return self.covers(review) and self.covers_own(review)

    def give(self, shown: TrustReview | None = None) -> None:
        """Trust what was shown, or the project's files as they are now.

        Args:
            shown: What the user has seen and agreed to.

        Raises:
            UsageError: The files have changed since; nothing is trusted.
        """
        now = self.review()
        if shown is not None and (now.digest, now.own_digest) != (shown.digest, shown.own_digest):
            raise UsageError(
                "the files of this folder changed while they were shown, so nothing is trusted; look again"
            )
        own = {self._own_key: now.own_digest} if now.own_digest else {}
        self._write({**self._folders(), str(self._locations.project): now.digest, **own})

    def keep(self, before: TrustReview, *, added: Callable[[str], bool] = lambda request: False) -> bool:
        """Keep trusting the project after a change of the user's own; False if something else changed too.

        Args:
            before: The trusted files, read before the change.
            added: Whether a new request is the user's own.
        """
        now = self.review()
        had = before.repository.requests
        if not self.covers(before) or not all(added(text) for text in now.repository.requests if text not in had):
            return False
        self._write({**self._folders(), str(self._locations.project): now.digest})
        return True

    def take(self) -> None:
        """Stop trusting the project."""
        self._write(
            {
                folder: digest
                for folder, digest in self._folders().items()
                if folder not in (str(self._locations.project), self._own_key)
            }
        )

    def _folders(self) -> Mapping[str, str]:
        with suppress(FileNotFoundError):
            try:
                content: object = json.loads(self._file.read_text("utf-8"))
            except ValueError as error:
                raise UsageError(f"{self._file}: not valid JSON ({error}); correct or remove the file") from None
            if isinstance(content, dict):
                found = cast("dict[str, object]", content).get("folders", {})
                return cast("dict[str, str]", found) if isinstance(found, dict) else {}
        return {}

    def _write(self, folders: Mapping[str, str]) -> None:
        # private: the file lists the projects of the user
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # ASCII: the name of a folder need not be valid UTF-8
        text = json.dumps({"folders": folders}, indent=2) + "\n"
        # resolved, so that a linked file stays a link
        replace_file(Path(self._file).resolve(), text.encode())
        self._file.chmod(0o600)


def load_trusted_settings(locations: Locations) -> Settings:
    """Read the settings as a run would, without command-line options."""
    trust = Trust(locations)
    review = trust.review()
    return load_settings(
        locations,
        trusted=trust.covers(review),
        own_trusted=trust.covers_own(review),
        repository=review.repository,
    )


def _digest(repository: Repository) -> str:
    """Identify exactly what was agreed to, so that anything added later asks again."""
    layers = [[layer.source, layer.content] for layer in repository.layers]
    # a server that replaces one of the user's is another request than one that does not
    servers = [text for text in repository.requests if text.startswith("MCP server ")]
    agents = [[agent.file, agent.digest] for agent in repository.agents]
    # without sub-agents the digest is the one of earlier versions, so that trust stays given
    parts = [layers, fingerprints(repository.skills), servers, *([agents] if agents else [])]
    return hash_text(canonical(parts))
