------------------------------- MODULE Group -------------------------------
(***************************************************************************)
(* How a Kafka consumer group shares partitions among its members, and     *)
(* what an acknowledged offset commit is promised.                         *)
(*                                                                         *)
(* One broker coordinates the group: the one that leads the group's        *)
(* partition of __consumer_offsets, here the offsets partition.  A member  *)
(* joins; the coordinator waits until the others have joined again, and    *)
(* gives the new generation a number.  One member assigns the partitions   *)
(* (SyncGroup).  The assignment is written to the offsets partition, and   *)
(* handed out when the write is durable.  So it goes each time a member    *)
(* comes, leaves, or is silent for too long:                               *)
(*                                                                         *)
(*   Empty -> PreparingRebalance -> CompletingRebalance -> Stable          *)
(*                                                                         *)
(* and back to PreparingRebalance; Dead is a group that was removed.       *)
(*                                                                         *)
(* Members commit offsets.  A commit names the member and its generation,  *)
(* is written to the offsets partition, and is acknowledged when that is   *)
(* durable; a fetch of offsets reads the coordinator's memory.  A new      *)
(* coordinator loads that memory from the log: what was durable survives,  *)
(* and what was only in memory does not (who has joined, a generation      *)
(* without an assignment, commits that were under way).  Loading and       *)
(* unloading are tasks; they run some time after the broker has learned    *)
(* that it leads, or does no more.                                         *)
(*                                                                         *)
(* What can go wrong, and the protection against it:                       *)
(*                                                                         *)
(*   P3          a member of an old generation commits: generation_fencing *)
(*   P5          a commit that is sent again overtakes a later one:        *)
(*               commit_async_not_retried                                  *)
(*   KAFKA-10614 loads and unloads run out of order:                       *)
(*               coordinator_epoch_order                                   *)
(*   KAFKA-5600  only part of a read is applied: apply_whole_load          *)
(*   KAFKA-13636 offsets expire while the group rebalances:                *)
(*               no_expiry_while_rebalancing                               *)
(*   KAFKA-4362  a former coordinator goes on: not_coordinator             *)
(*   KAFKA-10284 a static member's new id is lost in a fail-over:          *)
(*               persist_static_member                                     *)
(*   KAFKA-8500  a static member stands beside itself:                     *)
(*               replace_static_member                                     *)
(*                                                                         *)
(* A STATIC member (KIP-345) keeps its place when its process is replaced  *)
(* by another one: the later process names the same group.instance.id,     *)
(* gets the assignment without a rebalance, and the earlier process is     *)
(* refused for good.  If StaticCount is 1, members 0 and 1 are such a pair.*)
(*                                                                         *)
(* The constant Drop is the set of protections to do without: the empty    *)
(* set is Kafka as it should be, every other set is a variant in which     *)
(* some property below should fall.                                        *)
(*                                                                         *)
(* What is coarser than Kafka.  The offsets partition's replication is     *)
(* Replication.tla's: here its log is one, the current leader's, and a     *)
(* broker is elected only if it has followed the present leader.  SyncGroup,*)
(* Heartbeat and LeaveGroup are one step each; JoinGroup is two.  A        *)
(* member's commits are handled in the order in which they were sent.  A   *)
(* member keeps its id when it joins again, so fencing rests on the        *)
(* generation.  An offset is the number of its commit, in the order of     *)
(* sending.  A removed group does not come back: that would be another.    *)
(*                                                                         *)
(* The same system, written in Python, is fencepost/model/group/group_system.py; the    *)
(* two have the same states, and a test compares them.                     *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    MemberCount,      \* Consumers, numbered from 0.
    PartitionCount,   \* Partitions to consume.
    BrokerCount,      \* Brokers that may coordinate; broker 0 leads at first.
    LastGeneration,   \* Completed joins.
    CommitCount,      \* Commits, of all members together.
    LastEpoch,        \* The highest leader epoch of the offsets partition.
    ExpiryCount,      \* Offsets that retention removes.
    StaticCount,      \* 1 if members 0 and 1 are two processes of one static member, else 0.
    Drop              \* The protections to do without, by name.

Members    == 0 .. MemberCount - 1
Partitions == 0 .. PartitionCount - 1
Brokers    == 0 .. BrokerCount - 1
Epochs     == 0 .. LastEpoch
None       == -1      \* No member, generation, commit, coordinator or epoch.
InFlight   == 2       \* Commits of a member on their way: enough to overtake.
Earlier    == 0       \* The static pair.
Later      == 1
IsStatic(m) == StaticCount > 0 /\ m \in {Earlier, Later}

Protections ==
    { "generation_fencing",            \* rule P3
      "commit_async_not_retried",      \* rule P5
      "coordinator_epoch_order",       \* KAFKA-10614
      "apply_whole_load",              \* KAFKA-5600
      "no_expiry_while_rebalancing",   \* KAFKA-13636
      "not_coordinator",               \* KAFKA-4362
      "persist_static_member",         \* KAFKA-10284
      "replace_static_member" }        \* KAFKA-8500

ASSUME
    /\ MemberCount \in Nat \ {0} /\ PartitionCount \in Nat \ {0} /\ BrokerCount \in Nat \ {0}
    /\ LastGeneration \in Nat /\ CommitCount \in Nat
    /\ LastEpoch \in Nat /\ ExpiryCount \in Nat
    /\ StaticCount \in 0 .. 1 /\ (StaticCount > 0 => MemberCount > 1)
    /\ Drop \subseteq Protections

Keeps(protection) == protection \notin Drop

VARIABLES
    \* Per broker
    epoch,        \* The leader epoch of the offsets partition that it has learned.
    leads,        \* Whether it leads in it.
    tasks,        \* The epochs whose load or unload has not run.
    loaded,       \* The coordinator epoch: that of the task that ran last.
    owns,         \* Whether it has the group in memory.
    group,        \* What it has: [state, generation, members, joined, assignment, offsets, static];
                  \* static: who of the static pair has the group.instance.id.
    \* Per member
    phase,        \* "Out", "Joining", "Syncing" (it knows its generation), "Owning".
    generation,   \* The one that it was told.
    assigned,     \* The partitions that it was told.
    asked,        \* While it joins: the broker that it waits for.
    sent,         \* Its commits on their way, oldest first: [generation, partition, number].
    \* The offsets partition
    leaders,      \* The leader of each leader epoch so far; the last one is current.
    log,          \* The current leader's records.
    durable,      \* How many of them no clean election loses.
    \* A ghost: the newest commit that was acknowledged, and by which coordinator epoch.
    acked,        \* Per partition [number, epoch].
    \* How much of the bounds is used
    commits, expiries

brokerVars == << epoch, leads, tasks, loaded, owns, group >>
memberVars == << phase, generation, assigned, asked, sent >>
logVars    == << leaders, log, durable >>
boundVars  == << commits, expiries >>
vars       == << brokerVars, memberVars, logVars, acked, boundVars >>

----------------------------------------------------------------------------
(* Small words *)

Last(s)      == s[Len(s)]
CurrentEpoch == Len(leaders) - 1
LeaderOf(e)  == leaders[e + 1]
Nobody       == [p \in Partitions |-> None]

NewGroup == [state |-> "Empty", generation |-> 0, members |-> {}, joined |-> {},
             assignment |-> Nobody, offsets |-> Nobody, static |-> None]

\* not_coordinator (KAFKA-4362): a broker answers for the group only if it has loaded it in
\* the epoch in which it leads, as far as it knows.
Serves(b) ==
    /\ owns[b]
    /\ Keeps("not_coordinator") => leads[b] /\ loaded[b] = epoch[b]

\* What a broker appends counts if it leads in the present epoch.
Writes(b) == leads[b] /\ epoch[b] = CurrentEpoch

----------------------------------------------------------------------------
(* The records of the group in the offsets partition (rule P4).            *)

Blank == [kind |-> "", generation |-> None, members |-> {}, assignment |-> Nobody,
          partition |-> None, number |-> None, static |-> None]

CommitRecord(c) == [Blank EXCEPT !.kind = "commit", !.generation = c.generation,
                                 !.partition = c.partition, !.number = c.number]
GroupRecord(g)  == [Blank EXCEPT !.kind = "group", !.generation = g.generation,
                                 !.members = g.members, !.assignment = g.assignment,
                                 !.static = g.static]
ExpiredRecord(p) == [Blank EXCEPT !.kind = "expired", !.partition = p]
RemovedRecord    == [Blank EXCEPT !.kind = "removed"]

\* A record, as a coordinator that loads the group applies it.
Applied(g, record) ==
    CASE record.kind = "commit"  -> [g EXCEPT !.offsets[record.partition] = record.number]
      [] record.kind = "expired" -> [g EXCEPT !.offsets[record.partition] = None]
      [] record.kind = "removed" -> [g EXCEPT !.state = "Dead"]
      [] record.kind = "group"   ->
            [g EXCEPT !.state = IF record.members = {} THEN "Empty" ELSE "Stable",
                      !.generation = record.generation, !.members = record.members,
                      !.assignment = record.assignment, !.static = record.static]

RECURSIVE AllApplied(_, _)
AllApplied(g, records) ==
    IF records = << >> THEN g ELSE AllApplied(Applied(g, Head(records)), Tail(records))

----------------------------------------------------------------------------
(* The beginning: broker 0 coordinates a group that nobody has joined.     *)

Init ==
    /\ epoch = [b \in Brokers |-> 0]
    /\ leads = [b \in Brokers |-> b = 0]
    /\ tasks = [b \in Brokers |-> {}]
    /\ loaded = [b \in Brokers |-> 0]
    /\ owns = [b \in Brokers |-> b = 0]
    /\ group = [b \in Brokers |-> NewGroup]
    /\ phase = [m \in Members |-> "Out"]
    /\ generation = [m \in Members |-> None]
    /\ assigned = [m \in Members |-> {}]
    /\ asked = [m \in Members |-> None]
    /\ sent = [m \in Members |-> << >>]
    /\ leaders = << 0 >>
    /\ log = << >>
    /\ durable = 0
    /\ acked = [p \in Partitions |-> [number |-> None, epoch |-> None]]
    /\ commits = 0 /\ expiries = 0

----------------------------------------------------------------------------
(* The offsets partition changes its leader (Replication.tla has more).    *)

\* A clean election: the new leader has followed the present one.  It holds all that is
\* durable, and of what is not, the first records or none.
Elect(b) ==
    /\ Len(leaders) <= LastEpoch
    /\ Last(leaders) # b
    /\ epoch[b] = CurrentEpoch
    /\ leaders' = Append(leaders, b)
    /\ \E end \in durable .. Len(log) :
          /\ log' = SubSeq(log, 1, end)
          /\ durable' = end
    /\ UNCHANGED << brokerVars, memberVars, acked, boundVars >>

\* LeaderAndIsr arrives, late or never.  The load or unload that it asks for runs later.
Learn(b, e) ==
    /\ e \in epoch[b] + 1 .. CurrentEpoch
    /\ epoch' = [epoch EXCEPT ![b] = e]
    /\ leads' = [leads EXCEPT ![b] = LeaderOf(e) = b]
    /\ tasks' = [tasks EXCEPT ![b] = @ \cup {e}]
    /\ UNCHANGED << loaded, owns, group, memberVars, logVars, acked, boundVars >>

\* coordinator_epoch_order (KAFKA-10614): a load or unload makes older ones void.
TaskDone(b, e) ==
    /\ e \in tasks[b]
    /\ tasks' = [tasks EXCEPT ![b] = IF Keeps("coordinator_epoch_order")
                                     THEN { t \in @ : t > e } ELSE @ \ {e}]
    /\ loaded' = [loaded EXCEPT ![b] = e]
    /\ UNCHANGED << epoch, leads, memberVars, logVars, acked, boundVars >>

\* apply_whole_load (KAFKA-5600): without it the last batch of the read is left out.
Load(b, e) ==
    /\ TaskDone(b, e)
    /\ LeaderOf(e) = b
    /\ LET part    == IF durable < 2 THEN durable ELSE durable - 1
           records == SubSeq(log, 1, IF Keeps("apply_whole_load") THEN durable ELSE part)
       IN  group' = [group EXCEPT ![b] = AllApplied(NewGroup, records)]
    /\ owns' = [owns EXCEPT ![b] = TRUE]

Unload(b, e) ==
    /\ TaskDone(b, e)
    /\ LeaderOf(e) # b
    /\ group' = [group EXCEPT ![b] = NewGroup]
    /\ owns' = [owns EXCEPT ![b] = FALSE]

\* The newest commit counts, in the order of sending.
Acknowledge(p, number, e) ==
    acked' = [acked EXCEPT ![p] = IF number > @.number
                                  THEN [number |-> number, epoch |-> e] ELSE @]

\* The next record becomes durable.  A commit is then what fetches read, and is acknowledged;
\* the generation that the record belongs to is stable.
Replicate(b) ==
    /\ Writes(b)
    /\ durable < Len(log)
    /\ LET record == log[durable + 1]
           mine   == group[b]
           waits  == mine.state = "CompletingRebalance" /\ mine.generation = record.generation
       IN  /\ group' = IF ~owns[b] THEN group
                       ELSE CASE record.kind = "commit" -> [group EXCEPT ![b] = Applied(@, record)]
                              [] record.kind = "group" /\ waits -> [group EXCEPT ![b].state = "Stable"]
                              [] OTHER -> group
           /\ IF record.kind = "commit" THEN Acknowledge(record.partition, record.number, epoch[b])
              ELSE UNCHANGED acked
    /\ durable' = durable + 1
    /\ UNCHANGED << epoch, leads, tasks, loaded, owns, memberVars, leaders, log, boundVars >>

----------------------------------------------------------------------------
(* The coordinator (rule P3).                                              *)

Rebalanced(g, members, joined) ==
    [g EXCEPT !.state = "PreparingRebalance", !.members = members, !.joined = joined,
              !.assignment = Nobody]

Without(g, m) ==
    [Rebalanced(g, g.members \ {m}, IF g.state = "PreparingRebalance" THEN g.joined \ {m} ELSE {})
        EXCEPT !.static = IF @ = m THEN None ELSE @]

\* All have joined, or the rebalance timed out: who has not joined is out.  A group without
\* members is written at once, another one together with its assignment.
CompleteJoin(b) ==
    /\ Serves(b)
    /\ group[b].state = "PreparingRebalance"
    /\ group[b].generation < LastGeneration
    /\ LET empty == group[b].joined = {}
           after == [group[b] EXCEPT !.state = IF empty THEN "Empty" ELSE "CompletingRebalance",
                                     !.generation = @ + 1,
                                     !.members = group[b].joined,
                                     !.joined = {},
                                     !.static = IF @ \in group[b].joined THEN @ ELSE None]
       IN  /\ empty => Writes(b)
           /\ group' = [group EXCEPT ![b] = after]
           /\ log' = IF empty THEN Append(log, GroupRecord(after)) ELSE log
    /\ UNCHANGED << epoch, leads, tasks, loaded, owns, memberVars, leaders, durable, acked,
                    boundVars >>

\* A member is silent; one that waits for the answer to JoinGroup is not.
SessionTimeout(b, m) ==
    /\ Serves(b)
    /\ group[b].state \in {"PreparingRebalance", "CompletingRebalance", "Stable"}
    /\ m \in group[b].members \ group[b].joined
    /\ group' = [group EXCEPT ![b] = Without(@, m)]
    /\ UNCHANGED << epoch, leads, tasks, loaded, owns, memberVars, logVars, acked, boundVars >>

Retains(b) ==
    /\ Serves(b) /\ Writes(b)
    /\ durable = Len(log)           \* No write is under way.

\* no_expiry_while_rebalancing (KAFKA-13636): the offsets of what members consume expire only
\* when there are none.  Then no promise holds for them any more.
ExpireOffset(b, p) ==
    /\ Retains(b)
    /\ \/ group[b].state = "Empty"
       \/ /\ ~Keeps("no_expiry_while_rebalancing")
          /\ group[b].state \in {"PreparingRebalance", "CompletingRebalance"}
    /\ group[b].offsets[p] # None
    /\ expiries < ExpiryCount
    /\ group' = [group EXCEPT ![b].offsets[p] = None]
    /\ log' = Append(log, ExpiredRecord(p))
    /\ acked' = IF group[b].state = "Empty"
                THEN [acked EXCEPT ![p] = [number |-> None, epoch |-> None]] ELSE acked
    /\ expiries' = expiries + 1
    /\ UNCHANGED << epoch, leads, tasks, loaded, owns, memberVars, leaders, durable, commits >>

RemoveGroup(b) ==
    /\ Retains(b)
    /\ ExpiryCount > 0
    /\ group[b].state = "Empty" /\ group[b].generation > 0
    /\ group[b].offsets = Nobody
    /\ group' = [group EXCEPT ![b].state = "Dead"]
    /\ log' = Append(log, RemovedRecord)
    /\ UNCHANGED << epoch, leads, tasks, loaded, owns, memberVars, leaders, durable, acked,
                    boundVars >>

----------------------------------------------------------------------------
(* Members (rule P3).                                                      *)

OtherBrokerVars == << epoch, leads, tasks, loaded, owns >>

\* The later process of a static member joins, while the group knows the earlier one.
ComesBack(m, g) == m = Later /\ g.static = Earlier

\* It has the place of the earlier one, in everything.
Replaced(g) ==
    LET Swapped(members) == IF Earlier \in members THEN (members \ {Earlier}) \cup {Later} ELSE members
    IN  [g EXCEPT !.members = Swapped(@), !.joined = Swapped(@), !.static = Later,
                  !.assignment = [p \in Partitions |-> IF @[p] = Earlier THEN Later ELSE @[p]]]

\* A member joins when it is none, when it waits elsewhere or in vain, and when its heartbeat
\* says that a rebalance is on.
MayJoin(m, b) ==
    LET g         == group[b]
        preparing == g.state = "PreparingRebalance"
        waits     == preparing /\ m \in g.joined /\ phase[m] = "Joining" /\ asked[m] = b
    IN  /\ Serves(b)
        /\ g.state # "Dead"
        /\ ~waits
        /\ phase[m] \in {"Out", "Joining"} \/ (preparing /\ m \in g.members)

\* It gives up what it owns.
Waits(m, b) ==
    /\ phase' = [phase EXCEPT ![m] = "Joining"]
    /\ generation' = [generation EXCEPT ![m] = None]
    /\ assigned' = [assigned EXCEPT ![m] = {}]
    /\ asked' = [asked EXCEPT ![m] = b]
    /\ UNCHANGED sent

\* FENCED_INSTANCE_ID: the earlier process is refused once it was replaced.
\* replace_static_member (KAFKA-8500): a static member takes its own place in any state, not
\* beside itself.
Join(m, b) ==
    /\ MayJoin(m, b)
    /\ ~(m = Earlier /\ group[b].static = Later)
    /\ ~(ComesBack(m, group[b]) /\ group[b].state = "Stable")          \* ReplaceStatic
    /\ LET g == IF ComesBack(m, group[b]) /\ Keeps("replace_static_member")
                THEN Replaced(group[b]) ELSE group[b]
           joined == IF g.state = "PreparingRebalance" THEN g.joined ELSE {}
       IN  group' = [group EXCEPT ![b] =
              [Rebalanced(g, g.members \cup {m}, joined \cup {m})
                  EXCEPT !.static = IF IsStatic(m) THEN m ELSE @]]
    /\ Waits(m, b)
    /\ UNCHANGED << OtherBrokerVars, logVars, acked, boundVars >>

\* KIP-345: in a stable group the later process gets the assignment of the earlier one.
\* persist_static_member (KAFKA-10284): it is told once that is durable, so that the next
\* coordinator knows it, too.
ReplaceStatic(m, b) ==
    /\ MayJoin(m, b)
    /\ StaticCount > 0 /\ ComesBack(m, group[b]) /\ group[b].state = "Stable"
    /\ IF Keeps("persist_static_member")
       THEN /\ Writes(b)
            /\ log' = Append(log, GroupRecord(Replaced(group[b])))
            /\ group' = [group EXCEPT ![b] = [Replaced(@) EXCEPT !.state = "CompletingRebalance"]]
       ELSE /\ log' = log
            /\ group' = [group EXCEPT ![b] = Replaced(@)]
    /\ Waits(m, b)
    /\ UNCHANGED << OtherBrokerVars, leaders, durable, acked, boundVars >>

\* The answer to JoinGroup, from the broker that was asked.
Joined(m, b) ==
    /\ Serves(b)
    /\ phase[m] = "Joining" /\ asked[m] = b
    /\ group[b].state \in {"CompletingRebalance", "Stable"}
    /\ m \in group[b].members
    /\ phase' = [phase EXCEPT ![m] = "Syncing"]
    /\ generation' = [generation EXCEPT ![m] = group[b].generation]
    /\ asked' = [asked EXCEPT ![m] = None]
    /\ UNCHANGED << brokerVars, assigned, sent, logVars, acked, boundVars >>

MaySync(m, b) ==
    /\ Serves(b)
    /\ phase[m] = "Syncing"
    /\ m \in group[b].members /\ generation[m] = group[b].generation

\* SyncGroup of the generation's leader, which is whoever is first here: any assignment to the
\* members.  It is handed out when it is durable.
Assign(m, b) ==
    /\ MaySync(m, b)
    /\ group[b].state = "CompletingRebalance"
    /\ group[b].assignment = Nobody
    /\ Writes(b)
    /\ \E assignment \in [Partitions -> group[b].members] :
          LET after == [group[b] EXCEPT !.assignment = assignment]
          IN  /\ group' = [group EXCEPT ![b] = after]
              /\ log' = Append(log, GroupRecord(after))
    /\ UNCHANGED << OtherBrokerVars, memberVars, leaders, durable, acked, boundVars >>

Sync(m, b) ==
    /\ MaySync(m, b)
    /\ group[b].state = "Stable"
    /\ phase' = [phase EXCEPT ![m] = "Owning"]
    /\ assigned' = [assigned EXCEPT ![m] = { p \in Partitions : group[b].assignment[p] = m }]
    /\ UNCHANGED << brokerVars, generation, asked, sent, logVars, acked, boundVars >>

Gone(m) ==
    /\ phase' = [phase EXCEPT ![m] = "Out"]
    /\ generation' = [generation EXCEPT ![m] = None]
    /\ assigned' = [assigned EXCEPT ![m] = {}]
    /\ asked' = [asked EXCEPT ![m] = None]
    /\ UNCHANGED sent

\* UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION: the member learns that it is none any more.
Heartbeat(m, b) ==
    /\ Serves(b)
    /\ phase[m] \in {"Syncing", "Owning"}
    /\ m \notin group[b].members \/ generation[m] # group[b].generation
    /\ Gone(m)
    /\ UNCHANGED << brokerVars, logVars, acked, boundVars >>

Leave(m, b) ==
    /\ Serves(b)
    /\ phase[m] = "Owning" /\ m \in group[b].members
    /\ ~IsStatic(m)                 \* It does not say goodbye.
    /\ Gone(m)
    /\ group' = [group EXCEPT ![b] = Without(@, m)]
    /\ UNCHANGED << OtherBrokerVars, logVars, acked, boundVars >>

----------------------------------------------------------------------------
(* Offset commits (rule P4, P5).                                           *)

\* commitAsync of a partition that the member owns.
Commit(m, p) ==
    /\ phase[m] = "Owning" /\ p \in assigned[m]
    /\ Len(sent[m]) < InFlight
    /\ commits < CommitCount
    /\ sent' = [sent EXCEPT ![m] = Append(@,
          [generation |-> generation[m], partition |-> p, number |-> commits])]
    /\ commits' = commits + 1
    /\ UNCHANGED << brokerVars, phase, generation, assigned, asked, logVars, acked, expiries >>

OtherMemberVars == << phase, generation, assigned, asked >>

\* The oldest commit is lost on its way, or refused.
LoseCommit(m) ==
    /\ sent[m] # << >>
    /\ sent' = [sent EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED << brokerVars, OtherMemberVars, logVars, acked, boundVars >>

\* commit_async_not_retried (P5): sent again, it stands behind a later one.
RetryCommit(m) ==
    /\ ~Keeps("commit_async_not_retried")
    /\ Len(sent[m]) > 1
    /\ sent' = [sent EXCEPT ![m] = Append(Tail(@), Head(@))]
    /\ UNCHANGED << brokerVars, OtherMemberVars, logVars, acked, boundVars >>

\* generation_fencing (P3): only members of the present generation commit, and not while the
\* next one is forming (REBALANCE_IN_PROGRESS).
Accepts(m, b) ==
    /\ Serves(b)
    /\ sent[m] # << >>
    /\ m \in group[b].members
    /\ group[b].state \in {"PreparingRebalance", "Stable"}
    /\ Keeps("generation_fencing") => Head(sent[m]).generation = group[b].generation

HandleCommit(m, b) ==
    /\ Accepts(m, b)
    /\ Writes(b)
    /\ log' = Append(log, CommitRecord(Head(sent[m])))
    /\ sent' = [sent EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED << brokerVars, OtherMemberVars, leaders, durable, acked, boundVars >>

\* Without not_coordinator (KAFKA-4362): a broker that leads no more answers from its memory.
AcknowledgeUnwritten(m, b) ==
    /\ ~Keeps("not_coordinator")
    /\ Accepts(m, b)
    /\ ~leads[b]
    /\ LET commit == Head(sent[m])
       IN  /\ group' = [group EXCEPT ![b].offsets[commit.partition] = commit.number]
           /\ Acknowledge(commit.partition, commit.number, loaded[b])
    /\ sent' = [sent EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED << OtherBrokerVars, OtherMemberVars, logVars, boundVars >>

----------------------------------------------------------------------------

Next ==
    \/ \E b \in Brokers :
          \/ Elect(b)
          \/ \E e \in Epochs : Learn(b, e) \/ Load(b, e) \/ Unload(b, e)
          \/ Replicate(b)
          \/ CompleteJoin(b)
          \/ \E m \in Members : SessionTimeout(b, m)
          \/ \E p \in Partitions : ExpireOffset(b, p)
          \/ RemoveGroup(b)
    \/ \E m \in Members :
          \/ \E p \in Partitions : Commit(m, p)
          \/ LoseCommit(m)
          \/ RetryCommit(m)
          \/ \E b \in Brokers :
                \/ Join(m, b) \/ ReplaceStatic(m, b) \/ Joined(m, b)
                \/ Assign(m, b) \/ Sync(m, b)
                \/ Heartbeat(m, b) \/ Leave(m, b)
                \/ HandleCommit(m, b) \/ AcknowledgeUnwritten(m, b)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What must hold.                                                         *)

Numbers     == None .. CommitCount - 1
Generations == 0 .. LastGeneration
Owners      == Members \cup {None}

TypeOK ==
    /\ epoch \in [Brokers -> Epochs] /\ loaded \in [Brokers -> Epochs]
    /\ leads \in [Brokers -> BOOLEAN] /\ owns \in [Brokers -> BOOLEAN]
    /\ \A b \in Brokers :
          /\ tasks[b] \subseteq Epochs
          /\ group[b].state \in {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable",
                                 "Dead"}
          /\ group[b].generation \in Generations
          /\ group[b].joined \subseteq group[b].members /\ group[b].members \subseteq Members
          /\ \A p \in Partitions : group[b].assignment[p] \in Owners
          /\ \A p \in Partitions : group[b].offsets[p] \in Numbers
          /\ group[b].static \in group[b].members \cup {None} /\ (group[b].static # None => StaticCount > 0)
          /\ group[b].state \in {"Empty", "Dead"} => group[b].members = {}
    /\ \A m \in Members :
          /\ phase[m] \in {"Out", "Joining", "Syncing", "Owning"}
          /\ generation[m] \in Generations \cup {None}
          /\ assigned[m] \subseteq Partitions
          /\ asked[m] \in Brokers \cup {None}
          /\ Len(sent[m]) <= InFlight
          /\ phase[m] # "Owning" => assigned[m] = {}
          /\ (phase[m] = "Joining") <=> (asked[m] # None)
    /\ \A i \in DOMAIN leaders : leaders[i] \in Brokers
    /\ durable \in 0 .. Len(log)
    /\ \A p \in Partitions : acked[p].number \in Numbers /\ acked[p].epoch \in Epochs \cup {None}
    /\ commits \in 0 .. CommitCount /\ expiries \in 0 .. ExpiryCount

\* OFFSET-SAFE: a coordinator reads back each commit that an epoch up to its own acknowledged,
\* or one that was sent later.
OffsetSafe ==
    \A b \in Brokers : owns[b] =>
        \A p \in Partitions :
            acked[p].epoch <= loaded[b] => group[b].offsets[p] >= acked[p].number

\* GENERATION-FENCE: a commit never stands behind a generation later than its own.
GenerationFence ==
    \A i, j \in DOMAIN log :
        (i < j /\ log[i].kind = "group" /\ log[j].kind = "commit") =>
            log[i].generation <= log[j].generation

\* GENERATION-MONO of a state: generations grow along the log.  A static member that came back
\* is written into its own.
GenerationMono ==
    \A i, j \in DOMAIN log :
        (i < j /\ log[i].kind = "group" /\ log[j].kind = "group") =>
            \/ log[i].generation < log[j].generation
            \/ log[i].generation = log[j].generation /\ log[i].static < log[j].static

\* GENERATION-MONO of a step: in one coordinator epoch the generation never goes back.
GenerationMonoStep ==
    \A b \in Brokers :
        (owns[b] /\ owns'[b] /\ loaded'[b] = loaded[b]) =>
            group[b].generation <= group'[b].generation
GenerationMonoSteps == [][GenerationMonoStep]_vars

\* ONE-CONSUMER: of one generation, two members never own one partition.  (Of a static pair the
\* earlier process may not have heard that it is fenced.)
OneConsumer ==
    \A m, n \in Members :
        (m # n /\ generation[m] = generation[n] /\ ~(IsStatic(m) /\ IsStatic(n))) =>
            assigned[m] \cap assigned[n] = {}

\* ONE-COORDINATOR: a broker that has done all it was told owns the group if and only if it
\* leads the offsets partition.
OneCoordinator ==
    \A b \in Brokers : tasks[b] = {} => (owns[b] <=> leads[b])

\* ONE-INSTANCE: no group has both processes of a static member; and once the later one has its
\* assignment, the present coordinator does not take the earlier one for a member of that
\* generation.
OneInstance ==
    StaticCount > 0 => \A b \in Brokers : owns[b] =>
        /\ ~({Earlier, Later} \subseteq group[b].members)
        /\ ~/\ leads[b] /\ epoch[b] = CurrentEpoch /\ loaded[b] = CurrentEpoch
            /\ phase[Later] = "Owning" /\ generation[Later] = group[b].generation
            /\ group[b].state \in {"CompletingRebalance", "Stable"}
            /\ Earlier \in group[b].members

=============================================================================
