"""A program of calls: it compares prices, waits for the user before it orders, and goes on with the answer."""

import asyncio

from callwright import Answers, Effect, Executor, Interrupted, Registry, tool
from callwright.codemode import CodeMode

PRICES = {"pencil": 2, "paper": 5, "ink": 9}
ordered: list[str] = []


@tool(effect=Effect.READ)
async def price(item: str) -> int:
    """Return the price of an item."""
    return PRICES[item]


@tool(effect=Effect.WRITE)
async def order(item: str) -> str:
    """Order an item."""
    ordered.append(item)
    return f"ordered {item}"


PROGRAM = """
items = ["pencil", "paper", "ink"]
prices = await asyncio.gather(*[price(item=item) for item in items])
cheapest = min(zip(prices, items))[1]
print(await order(item=cheapest))
"""


async def main() -> None:
    executor = Executor(CodeMode(Registry(price, order)))
    waiting = await executor.run("run_code", {"code": PROGRAM})
    assert isinstance(waiting, Interrupted) and ordered == []
    (question,) = waiting.questions
    print(question.summary)
    print(question.origin)
    done = await executor.run("run_code", {"code": PROGRAM}, answers=Answers.approving([question]))
    print(done.text, ordered)


asyncio.run(main())
