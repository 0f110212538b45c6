"""What is left of a tool's words without what differs from run to run (ports, times, ids, speeds), and
without the sentence of an error: its class, which is its code in the protocol, has to be Kafka's, its words
are ours.

Owns the patterns. Must not know which tool wrote what.
"""

import re


def _sorted(found: re.Match[str]) -> str:
    """A list in an order that means nothing."""
    return found[1] + ",".join(sorted(re.split(r",(?![^{]*})", found[2])))


PATTERNS = (
    (r"(Isr: )([\d,]+)", _sorted),
    (r"(\"(?:brokers|isrs)\":\[)([^\]]*)", _sorted),
    (r"127\.0\.0\.1:\d+|localhost:\d+", "HOST:PORT"),
    (r"(?<=at )127\.0\.0\.1|/127\.0\.0\.1", "HOST"),
    (r"\"port\":\s*\d+", "PORT"),
    (r"TopicId: [\w-]{22}", "TopicId: ID"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"console-consumer-\d+", "console-consumer-N"),
    (r"rdkafka#\w+-\d+", "rdkafka#N"),
    (r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([:,.]\d{3})?(\+\d{4})?\]?", "TIME"),
    (r"(CreateTime|LogAppendTime|timestamp|TIMESTAMP)([:=]\s*)1\d{12}", r"\1\2TIME"),
    (r"\b1[5-9]\d{11}\b", "TIME"),
    (r"%\d\|[\d.]+\|", "%LOG|"),
    (
        r"\d+(\.\d+)? (records/sec|MB/sec|ms avg latency|ms max latency|ms 50th|ms 95th|ms 99th|ms 99\.9th)",
        r"N \2",
    ),
    (r"\(\d+(\.\d+)? MB/sec\)", "(N MB/sec)"),
    (r"after \d+ms|in \d+ ms|\d+ ms has passed", "TIME"),
    (r"(TIME, TIME), .*", r"\1, figures"),
    (r"\[main\] (WARN|ERROR) \S+", r"\1"),
    (r"\"(?:[^\"]*/)?broker-(\d)(?:/files|/data)?\"", r"DIRECTORY \1"),
    (r"/\S*/(broker-\d|delete\.json|plan\.json|elect\.json)(/data)?", r"HOME/\1"),
    (r"\"replicas\":\[[\d,]+\],(?=\"log_dirs\":\[\"any\")", "DRAWN,"),
    (r"producerId: \d+", "producerId: N"),
    (r"from broker \S+ \S+:?|from broker \d: \S+", "from broker N"),
    (r"(originating_broker\":{\"id\":|controllerid\":)\d+(,\"name\":\"\S+?\")?", r"\1N"),
    (r"HOST:PORT\s+\(\d\)|HOST:PORT/\d", "HOST:PORT"),
    (r"(broker \d at HOST:PORT) \(controller\)", r"\1"),
    (
        r"((?:org\.apache\.kafka\.common\.errors|java\.util\.concurrent)\.\w+Exception): (?!org\.apache).*",
        r"\1: SENTENCE",
    ),
    (r"(Error while executing topic command :) .*", r"\1 SENTENCE"),
    (r"(Disk error|correlation id) \d+", r"\1 N"),
    (r"crc: \d+|crc=\d+", "CRC"),
    (r"[ \t]+", " "),
)
COMPILED = tuple((re.compile(pattern), to) for pattern, to in PATTERNS)
IGNORED = re.compile(r"The metadata response from the cluster reported a recoverable issue|Bootstrap broker")
"""Warnings that come as often as the machine is slow."""
DEPARTURES = (
    ("no topic ids", r" TopicId: ID", ""),
    ("no eligible leader replicas (4.x)", r" Elr:.*$", ""),
    ("no min.insync.replicas of the cluster (4.x)", r"(?<=Configs:) min\.insync\.replicas=1,?", " "),
)
"""What all answers may differ in: a name, and what is left out on both sides before they are held against
each other again."""
STACK = re.compile(r"^\s+at [\w.$/]+\(.*$|^\s+\.\.\. \d+ more$")


def normal(text: str, *, unordered: bool = False) -> list[str]:
    """The lines that two runs of the same command have in common. Frames of a stack trace are left out."""
    lines = []
    for line in text.splitlines():
        if STACK.match(line) or IGNORED.search(line):
            continue
        for pattern, to in COMPILED:
            line = pattern.sub(to, line)
        if line.strip():
            lines.append(line.strip())
    return sorted(lines) if unordered else lines


def departed(lines: list[str]) -> tuple[list[str], set[str]]:
    """The lines without what may differ, and the names of what was left out."""
    names = set()
    for name, pattern, to in DEPARTURES:
        changed = [re.sub(pattern, to, line).replace("  ", " ").rstrip() for line in lines]
        if changed != lines:
            names.add(name)
        lines = changed
    return lines, names
