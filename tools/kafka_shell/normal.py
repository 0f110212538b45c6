"""What is left of a tool's words without what differs from run to run: ports, times, ids, speeds.

Owns the patterns. Must not know which tool wrote what.
"""

import re

PATTERNS = (
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
    (r"\d+(\.\d+)? (records/sec|MB/sec|ms avg latency|ms max latency|ms 50th|ms 95th|ms 99th|ms 99\.9th)", r"N \2"),
    (r"\(\d+(\.\d+)? MB/sec\)", "(N MB/sec)"),
    (r"after \d+ms|in \d+ ms|\d+ ms has passed", "TIME"),
    (r"(TIME, TIME), .*", r"\1, figures"),
    (r"\[main\] (WARN|ERROR) \S+", r"\1"),
    (r"/\S*/(?=(broker-\d|delete\.json|plan\.json|elect\.json))", "HOME/"),
    (r"crc: \d+|crc=\d+", "CRC"),
    (r"[ \t]+", " "),
)
COMPILED = tuple((re.compile(pattern), to) for pattern, to in PATTERNS)
STACK = re.compile(r"^\s+at [\w.$/]+\(.*$|^\s+\.\.\. \d+ more$")


def normal(text: str, *, unordered: bool = False) -> list[str]:
    """The lines that two runs of the same command have in common. Frames of a stack trace are left out."""
    lines = []
    for line in text.splitlines():
        if STACK.match(line):
            continue
        for pattern, to in COMPILED:
            line = pattern.sub(to, line)
        if line.strip():
            lines.append(line.strip())
    return sorted(lines) if unordered else lines
