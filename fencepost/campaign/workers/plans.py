"""The plan of each seed of a campaign: the swarm's, or one given plan under many seeds."""

from attrs import evolve

from fencepost.campaign.swarm.real_systems import PROFILES, REAL_PROFILE, swarm_for_real
from fencepost.campaign.swarm.swarm import swarm
from fencepost.campaign.workers.results import Job
from fencepost.traces.plan import ASK_NEVER, Plan
from fencepost.traces.plan_json import plan_from_json


def real_profile(job: Job) -> str:
    """The profile of a job against a real system."""
    return job.profile if job.profile in PROFILES else REAL_PROFILE


def plan_of(job: Job, seed: int, profile: str = "") -> Plan:
    """The plan that a campaign runs under `seed`. profile: instead of the job's (driver/steering.py). Raises
    PlanError."""
    plan = _plan_of(job, seed, profile)
    return plan if job.asking else evolve(plan, asking=ASK_NEVER)


def _plan_of(job: Job, seed: int, profile: str) -> Plan:
    if job.real and not job.plan:
        return swarm_for_real(seed, job.faults, job.control, profile=profile or real_profile(job))
    if not job.plan:
        return swarm(seed, profile or job.profile, job.bugs, job.faults)
    plan = plan_from_json(job.plan)
    return evolve(plan, seed=seed, cluster=evolve(plan.cluster, bugs=job.bugs or plan.cluster.bugs))
