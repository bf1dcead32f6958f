#!/usr/bin/python3
"""The job of `sonde-pod load`, done as load generators in Python do it: asyncio and aiohttp, one process.

    aiohttp_load.py URL TRACE OUT [CONCURRENCY [WARMUP]]

Sends the requests of TRACE (JSON lines: timestamp in ms, input_length, output_length) when they are due, or with
CONCURRENCY that many at a time, after WARMUP requests that do not count; reads each stream of events, stamps every chunk with content as it is read, and at the end
writes OUT: a line of JSON a request (due, start, chunks' times in ns of the wall clock), and one with the CPU time used.
As careful as one can be without leaving asyncio: bodies made ahead, one session, kept connections, no logging.
"""
import asyncio
import json
import sys
import time

import aiohttp

HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}


def bodies(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            yield r["timestamp"] / 1e3, json.dumps({
                "model": "m", "messages": [{"role": "user", "content": " ".join(["word"] * r["input_length"])}],
                "max_tokens": r["output_length"], "stream": True, "stream_options": {"include_usage": True}}).encode()


async def request(session, url, body, record):
    record["start"] = time.time_ns()
    try:
        async with session.post(url, data=body, headers=HEADERS) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                now = time.time_ns()
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                event = json.loads(line[6:])
                if any(c["delta"].get("content") for c in event["choices"]):
                    record["chunks"].append(now)
    except (aiohttp.ClientError, OSError) as e:
        record["error"] = str(e)


async def by_the_clock(session, url, requests, records):
    loop = asyncio.get_running_loop()
    began, wall = loop.time() + 0.05, time.time_ns() + 50_000_000
    tasks = []
    for (due, body), record in zip(requests, records):
        record["due"] = wall + int(due * 1e9)
        delay = began + due - loop.time()
        if delay > 0:
            await asyncio.sleep(delay)
        tasks.append(asyncio.create_task(request(session, url, body, record)))
    await asyncio.gather(*tasks)


async def so_many_at_a_time(session, url, requests, records, concurrency):
    todo = iter(zip(requests, records))

    async def one_after_the_other():
        for (_, body), record in todo:
            await request(session, url, body, record)

    await asyncio.gather(*(one_after_the_other() for _ in range(concurrency)))


async def run(url, trace, out, concurrency, warmup):
    requests = list(bodies(trace))
    records = [{"chunks": []} for _ in requests]
    url += "/v1/chat/completions"
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=600)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600)) as session:
        await so_many_at_a_time(session, url, requests[:warmup], [{"chunks": []} for _ in requests[:warmup]], concurrency or 1)
        cpu = time.process_time()
        if concurrency:
            await so_many_at_a_time(session, url, requests, records, concurrency)
        else:
            await by_the_clock(session, url, requests, records)
        cpu = time.process_time() - cpu
    with open(out, "w", encoding="utf-8") as f:
        for record in records:
            f.write(json.dumps(record) + "\n")
        f.write(json.dumps({"cpu_seconds": cpu}) + "\n")


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:4], *(int(sys.argv[i]) if len(sys.argv) > i else 0 for i in (4, 5))))
