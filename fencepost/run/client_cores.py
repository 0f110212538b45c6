"""Which client core a process of a plan runs, and what a cluster knows it by."""

from attrs import evolve

from fencepost.impl.broker.parts import Parts
from fencepost.impl.client.client import Client
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.producer.pipelined import PipelinedClient, make_pipelined_client
from fencepost.traces.plan import Plan, PlannedOperation, ProducerOptions

PATIENCE_MS = 5_000
"""How long the run's own client waits for an answer at least: the most that the swarm draws for a client."""


def client_of(process: int) -> str:
    """The client id of a process of a real run. process: its number."""
    return f"process-{process}"


def make_client(
    plan: Plan, parts: Parts, process: int, brokers: tuple[int, ...], *, healing: bool
) -> Client | PipelinedClient:
    """The core of a process. healing: it is the run's own reader, which reads everything there is, and whose
    appends are plain. It waits longer than any append takes: whether the cluster serves is asked, not whether
    the plan's clients would have had the patience."""
    options, metadata = plan.client_of(process), ClientMetadata(brokers)
    if healing:
        patient = evolve(
            options,
            request_timeout_ms=max(options.request_timeout_ms, PATIENCE_MS),
            delivery_timeout_ms=max(options.delivery_timeout_ms, 2 * PATIENCE_MS),
            auto_offset_reset="earliest",
            producer=ProducerOptions(),
        )
        return Client(process, patient, metadata)
    if not options.producer.pipelined:
        return Client(process, options, metadata)
    return make_pipelined_client(process, options, metadata, parts.producer_sequences, seed=process)


def is_pipelined(plan: Plan, operation: PlannedOperation, *, healing: bool) -> bool:
    """Whether its process goes on before this operation has ended."""
    return plan.client.producer.pipelined and operation.function == "append" and not healing
