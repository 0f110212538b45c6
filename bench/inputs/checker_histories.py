"""Histories for the measure `judges`: what clients of a correct system see, with unknown outcomes, some
with one answer changed.

Each client runs one operation after another; an operation takes effect at a random moment between its
invocation and its completion. A client whose operation stays unknown goes on as a new process, as Jepsen's
do; the effect may come at any later time, or never.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from attrs import evolve

from fencepost.checkers.models import Model, model_named
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace

Draw = Callable[[Random, int], dict[str, Any]]
Answer = Callable[[Any, Operation], dict[str, Any]]


def _cas_draw(random: Random, _: int) -> dict[str, Any]:
    kind = random.randrange(3)
    if kind == 0:
        return {"function": Function.READ}
    if kind == 1:
        return {"function": Function.WRITE, "argument": json.dumps(random.randrange(5))}
    return {"function": Function.CAS, "argument": json.dumps([random.randrange(5), random.randrange(5)])}


def _cas_answer(state: Any, operation: Operation) -> dict[str, Any]:
    if operation.function is Function.READ:
        return {"result": json.dumps(state)}
    if operation.function is Function.CAS:
        return {"result": json.dumps(json.loads(operation.argument or "")[0] == state)}
    return {}


def _register_draw(random: Random, number: int) -> dict[str, Any]:
    if random.random() < 0.6:
        return {"function": Function.READ}
    return {"function": Function.WRITE, "argument": json.dumps(number + 1)}


def _key_draw(random: Random, number: int) -> dict[str, Any]:
    key = {"key": str(random.randrange(10))}
    kind = random.randrange(10)
    if kind < 5:
        return {"function": Function.GET, **key}
    function = Function.PUT if kind == 5 else Function.APPEND
    return {"function": function, "argument": json.dumps(f"x{number}y"), **key}


def _key_answer(state: Any, operation: Operation) -> dict[str, Any]:
    return {"result": json.dumps(state)} if operation.function is Function.GET else {}


_PLACE: dict[str, Any] = {"topic": "t", "partition": 0, "acks": -1}
_READ: dict[str, Any] = {"function": Function.POLL, "strong": True, **_PLACE}


def _log_draw(random: Random, number: int) -> dict[str, Any]:
    if random.random() < 0.5:
        return _READ
    record = Record(topic="t", partition=0, offset=-1, value=number)
    return {"function": Function.APPEND, "records": (record,), **_PLACE}


READ_AT_MOST = 5
"""Records of one poll: the last ones."""


def _log_answer(state: Any, operation: Operation) -> dict[str, Any]:
    if operation.function is Function.APPEND:
        return {"offset": len(state)}
    start = max(0, len(state) - READ_AT_MOST)
    read = tuple(
        Record(topic="t", partition=0, offset=start + i, value=v) for i, v in enumerate(state[start:])
    )
    return {"offset": start, "end_offset": len(state), "records": read}


KINDS: dict[str, tuple[Draw, Answer]] = {
    "cas-register": (_cas_draw, _cas_answer),
    "register": (_register_draw, _cas_answer),
    "key-value": (_key_draw, _key_answer),
    "log": (_log_draw, _log_answer),
}


def model_of(name: str) -> Model:
    """The model that both tools are asked about."""
    return model_named(name, {"initial": 0}) if name in ("cas-register", "register") else model_named(name)


def history(
    name: str, seed: int, *, clients: int, operations: int, unknown: float, wrong: bool = False
) -> Trace:
    """One history. unknown: the share of operations without an answer; wrong: one read answers what it should
    not."""
    random, model = Random(f"{name} {seed}"), model_of(name)
    draw, answer = KINDS[name]
    free = [random.random() for _ in range(clients)]
    begun: list[tuple[float, Operation, bool]] = []
    process = list(range(clients))
    for number in range(operations):
        client = min(range(clients), key=free.__getitem__)
        invoke = free[client]
        complete = invoke + random.expovariate(1.0) + 0.01
        lost = random.random() < unknown
        effect = random.uniform(invoke, complete if not lost else complete + 5 * random.random())
        operation = Operation(
            op_id=number,
            process=process[client],
            invoke_time=int(invoke * 1e9),
            completion_time=None if lost else int(complete * 1e9) + 1,
            outcome=Outcome.UNKNOWN if lost else Outcome.OK,
            **draw(random, number),
        )
        if lost:
            process[client] += clients
        begun.append((effect, operation, lost and random.random() < 0.5))
        free[client] = complete + 0.01 + random.expovariate(20.0)
    states: dict[str | None, Any] = {}
    log: list[int] = []
    done = []
    for _, operation, never in sorted(begun, key=lambda item: item[0]):
        state = log if name == "log" else states.get(operation.key, model.init())
        answered = evolve(operation, **answer(state, operation))
        if not never:
            if name == "log":
                log.extend(record.value for record in operation.records)
            elif (call := model.call(answered)) is not None:
                after = model.step(state, call)
                states[operation.key] = (
                    after if operation.outcome is Outcome.OK or not isinstance(after, type(None)) else state
                )
                if not isinstance(after, int | str):
                    states[operation.key] = state  # an unknown cas that found something else
        if operation.outcome is Outcome.UNKNOWN:
            answered = operation
        done.append(answered)
    done.sort(key=lambda operation: operation.op_id)
    if name == "log":
        done.append(_final_read(done, log, max(at for at, _, _ in begun)))
    if wrong:
        done = _changed(done, random)
    return Trace(trace_id=seed, plan="", seed=seed, software_version="", operations=tuple(done))


def _final_read(done: list[Operation], log: list[int], latest: float) -> Operation:
    """A strong read after everything, so that a history says what became of each record. latest: when the
    last effect came."""
    ended = max(latest * 1e9, *(one.completion_time or 0 for one in done))
    read = Operation(
        op_id=len(done),
        process=done[0].process,
        invoke_time=int(ended) + 1,
        completion_time=int(ended) + 2,
        outcome=Outcome.OK,
        **_READ,
    )
    return evolve(read, **_log_answer(log, read))


def _changed(operations: list[Operation], random: Random) -> list[Operation]:
    """The same with the answer of one read in the second half taken from an earlier one that differs."""
    reads = [o for o in operations if o.function in (Function.READ, Function.GET) and o.outcome is Outcome.OK]
    late = random.choice(reads[len(reads) // 2 :])
    others = [o.result for o in reads if o.key == late.key and o.result != late.result]
    result = random.choice(others) if others else late.result
    return [evolve(o, result=result) if o is late else o for o in operations]


def as_porcupine(trace: Trace) -> list[dict[str, Any]]:
    """The operations as the harness under peers/porcupine reads them."""
    rows = []
    for o in trace.operations:
        row: dict[str, Any] = {
            "process": o.process, "function": o.function.value, "key": o.key or "", "invoke": o.invoke_time,
            "complete": o.completion_time or 0, "unknown": o.outcome is Outcome.UNKNOWN,
        }  # fmt: skip
        argument = json.loads(o.argument) if o.argument else None
        result = json.loads(o.result) if o.result else None
        if o.function in (Function.APPEND, Function.POLL) and o.topic:
            values = [record.value for record in o.records]
            appends = o.function is Function.APPEND
            row["argument"] = values if appends else [o.offset or 0]
            row["result"] = (o.offset if appends else o.end_offset) or 0
            row["records"] = [] if appends else values
        elif isinstance(argument, str) or isinstance(result, str):
            row["text"], row["answer"] = argument or "", result or ""
        else:
            row["argument"] = argument if isinstance(argument, list) else [argument or 0]
            row["result"] = int(result or 0)
        rows.append(row)
    return rows
