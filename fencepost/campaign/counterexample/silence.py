"""What does not happen in a story: fetches that are never made, answers that never come, elections that
nobody hears of.

Owns the faults that prevent it. Must not know what does happen (plan.py).
"""

from fencepost.campaign.counterexample.draft import Draft, members
from fencepost.campaign.counterexample.story import FOLLOWING, StoryStep

BOTH_WAYS, WHAT_IT_RECEIVES = 0, 2
"""Parameters of a partition."""


def cut_links(draft: Draft, era: int, wait_ms: int) -> None:
    """Between each follower and the leader of an era, as far as the story has no fetches there."""
    story, draw = draft.story, draft.draw
    state = story.at_end_of(era)
    leader = state.quorum[era][0]
    for follower in range(story.constants.replicas):
        if follower == leader:
            continue
        steps = [
            (index, step)
            for index, step in enumerate(story.steps)
            if step.era == era and step.name in FOLLOWING and step.actor == follower
        ]
        begin = draft.begins(era) - draw.between((1, 60), "cx.lead", era, follower) if era else 0
        parameter = BOTH_WAYS
        if steps:
            parameter = WHAT_IT_RECEIVES
            slack = draw.between((2, wait_ms), "cx.slack", era, follower)
            last = _last_answer(draft, era, follower, steps)
            if last is not None:
                early = draw.chance(50, "cx.early", era, follower)
                hurry = draw.between((0, 14), "cx.round_trips", era, follower) * draft.latency_us // 1_000
                begin = draft.begins(era) + hurry if early else last + slack
            if len(state.replicas[follower].log) == len(state.replicas[leader].log):
                if state.replicas[follower].high_watermark == len(state.replicas[follower].log):
                    continue
                begin = _last_append(draft, era) + slack
        elif draw.chance(10, "cx.uncut", era, follower):
            continue
        until = draft.ends(era) + draw.between((0, 120), "cx.lag", era, follower)
        draft.fault("partition", begin, until, draft.broker(follower), draft.broker(leader), parameter)


def _last_answer(draft: Draft, era: int, follower: int, steps: list[tuple[int, StoryStep]]) -> int | None:
    """When a follower that ends the era behind its leader last got an answer that it needs: a truncation, or
    records while the leader appended."""
    appended = [
        index for index, step in enumerate(draft.story.steps) if step.era == era and step.name == "append"
    ]
    needed = [index for index, step in steps if step.name != "fetch"]
    if appended:
        grows = [
            index
            for index, step in steps
            if len(step.after.replicas[follower].log) > len(step.before.replicas[follower].log)
        ]
        needed += [index for index in grows if index > appended[0]]
    return draft.times[max(needed)] if needed else None


def _last_append(draft: Draft, era: int) -> int:
    appended = [
        draft.times[index]
        for index, step in enumerate(draft.story.steps)
        if step.era == era and step.name == "append"
    ]
    return appended[-1] if appended else draft.begins(era)


def deafen(draft: Draft, era: int) -> None:
    """Members of an era's ISR that have not heard of it when it ends: they hear of nobody but its leader."""
    state = draft.story.at_end_of(era)
    leader, isr = state.quorum[era]
    for replica in sorted(members(isr)):
        if state.replicas[replica].epoch >= era or not draft.draw.chance(60, "cx.deaf", era, replica):
            continue
        begin = draft.begins(era) - draft.draw.between((1, 60), "cx.deaf_lead", era, replica)
        until = draft.ends(era) - draft.draw.between((0, 60), "cx.deaf_lag", era, replica)
        for broker in range(1, draft.all_brokers + 1):
            if broker not in (draft.brokers[replica], draft.brokers[leader]):
                draft.fault(
                    "partition", begin, until, draft.broker(replica), f"broker {broker}", WHAT_IT_RECEIVES
                )
