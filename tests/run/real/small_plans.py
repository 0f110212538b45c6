"""Small plans in the time of the embedded cluster."""

from fencepost.traces.plan import ClientOptions, ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions

KEEPS = ClientOptions(request_timeout_ms=400, delivery_timeout_ms=6_000, retry_backoff_ms=20)


def plan_of(*faults, client=KEEPS, seed=1, count=60, acks=-1, **topic):
    """Appends and polls over a second, and these faults: (kind, milliseconds, for, target)."""
    return Plan(
        seed=seed,
        safety_ms=1_200,
        liveness_ms=300_000,
        cluster=ClusterOptions(topics=(TopicOptions(min_insync_replicas=2, **topic),)),
        client=client,
        operations=tuple(
            PlannedOperation(
                op_id=number,
                process=number % 3,
                at_ms=number * 1_200 // count,
                function="append" if number % 4 else "poll",
                acks=acks,
            )
            for number in range(1, count + 1)
        ),
        faults=tuple(
            Fault(fault_id=number, kind=kind, at_ms=at_ms, duration_ms=for_ms, target=target, parameter=0)
            for number, (kind, at_ms, for_ms, target) in enumerate(faults)
        ),
    )
