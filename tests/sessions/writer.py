"""A process of the stress test: threads that append counted records through several stores of one file.

Each confirmed record is added to a ledger before the next one is written; the test compares the two.
"""

import asyncio
import json
import os
import random
import sys
import threading
from pathlib import Path

from callwright.core.messages import UserMessage
from callwright.sessions import SqliteStore
from callwright.sessions.records import Said


async def write_session(paths: list[str], session: str, records: int, ledger: Path) -> None:
    """Append records to one session, each time through another store of the same file."""
    chance = random.Random(session)
    number = 0
    with ledger.open("a", encoding="utf-8") as confirmed:
        while number < records:
            store = SqliteStore(chance.choice(paths), wait_seconds=60)
            hold = await store.hold(session)
            for _ in range(chance.randint(1, 5)):
                await hold.append(Said(UserMessage(f"{session} {number}")))
                confirmed.write(f"{number}\n")
                confirmed.flush()
                number += 1
            hold.note(Said(UserMessage(f"{session} note")))
            await hold.release()
            if chance.random() < 0.7:
                store.close()
            # the others are dropped without close, as programs do


def main() -> None:
    """Run the threads that the order on the command line asks for."""
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"])

    def write(session: str) -> None:
        ledger = folder / f"{session}.ledger"
        asyncio.run(write_session(order["paths"], session, order["records"], ledger))

    sessions = [f"{order['process']}-{number}" for number in range(order["threads"])]
    threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if order["process"] % 2:
        os._exit(0)  # every other process leaves without closing anything


if __name__ == "__main__":
    main()
