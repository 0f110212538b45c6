---------------------------- MODULE Controller ----------------------------
(***************************************************************************)
(* Who is in charge of a Kafka cluster, as ZooKeeper-era Kafka decides it, *)
(* and what keeps one that is in charge no more from doing harm.           *)
(*                                                                         *)
(* Each broker registers in ZooKeeper under a session.  One of them holds  *)
(* /controller, an ephemeral node: that broker is the controller.  It      *)
(* watches the registrations, elects the leader of each partition, writes  *)
(* leader and in-sync replicas (ISR) to ZooKeeper, and tells the brokers   *)
(* by LeaderAndIsr requests.  Here there is one topic with one partition.  *)
(* An admin may ask to REASSIGN it to other brokers: old and new replicas  *)
(* stand together until the new ones are in sync, then the old ones are    *)
(* deleted by StopReplica requests.  A controller may go at any step, and  *)
(* its successor goes on from what stands in ZooKeeper.                    *)
(*                                                                         *)
(* What makes this hard is that nobody knows when it is over.  A session   *)
(* expires while its process pauses; another broker becomes controller;    *)
(* then the first one goes on where it stopped.  Such a ZOMBIE reads,      *)
(* writes and sends as before: Kafka's client opens a new session behind   *)
(* its back, and the thread that acts as controller hears of it last.      *)
(* Requests are late, overtake each other, arrive twice or never.  A       *)
(* process dies, and another one comes back under the same number.         *)
(*                                                                         *)
(* Four numbers answer that.  Each of them grows, and each is compared by  *)
(* whoever receives it:                                                    *)
(*                                                                         *)
(*   controller epoch   one for each election of a controller; ZooKeeper   *)
(*                      checks it with every write, brokers with every     *)
(*                      request                                            *)
(*   zkVersion          of the partition's state: compare-and-set          *)
(*   leader epoch       one for each election of a leader                  *)
(*   broker epoch       one for each registration: which incarnation of a  *)
(*                      broker a request is meant for                      *)
(*                                                                         *)
(* Bugs that Kafka had, or would have, without one of the protections:     *)
(*                                                                         *)
(*   KAFKA-6082  a controller wrote to ZooKeeper after its successor was   *)
(*               elected                                                   *)
(*   KAFKA-532   a broker obeyed two controllers in turn                   *)
(*   KAFKA-1096  a deposed controller read the new epoch and took it for   *)
(*               its own                                                   *)
(*   KAFKA-1188  a broker obeyed an old LeaderAndIsr                       *)
(*   KIP-380     a restarted broker obeyed a request to its former self    *)
(*   KAFKA-708   the last in-sync replica died and left the ISR empty      *)
(*   KAFKA-5310  a controller that resigned remembered a reassignment, and *)
(*               did it again when it was elected again                    *)
(*   KIP-570     a late StopReplica deleted a replica that had come back   *)
(*   KAFKA-1097  a replica that was reassigned away got back into the ISR  *)
(*   ADR-1       a leader restarted while no controller watched, and led   *)
(*               the same epoch a second time (docs/decisions/0001)        *)
(*                                                                         *)
(* Each protection has a name.  The constant Drop is the set of those to   *)
(* do without: the empty set is Kafka as it should be.                     *)
(*                                                                         *)
(* What is one step here and more in Kafka: a multi and the batch that is  *)
(* sent after it (a batch that was never sent is one that never arrives);  *)
(* the reads at the beginning of a reign.  That a follower has caught up   *)
(* is decided freely: Replication.tla has the records.  As in Kafka nobody *)
(* waits for the answers to StopReplica.  A deleted replica's leader epoch *)
(* is remembered while its process lives, so that an older request cannot  *)
(* bring the replica back: Kafka has that from the order of a connection.  *)
(*                                                                         *)
(* The same system, written in Python, is fencepost/model/controller.py;   *)
(* the two have the same states, and a test compares them.                 *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    BrokerCount,    \* Brokers are numbered from 0.
    LastEpoch,      \* The highest controller epoch: so many elections of a controller.
    SessionCount,   \* Sessions that expire.
    WriteCount,     \* Writes of the partition's state, so the highest zkVersion.
    CrashCount,     \* Processes that die.
    SpareCount,     \* Brokers without a replica at the beginning: the last ones.
    ReassignmentCount,  \* Reassignments that are asked for.
    Drop            \* The protections to do without, by name.

Brokers == 0 .. BrokerCount - 1
None    == -1       \* No broker, no registration, no epoch.

Protections ==
    { "fenced_zookeeper_write",         \* KAFKA-6082
      "controller_epoch_fencing",       \* KAFKA-532
      "epoch_read_in_election_only",    \* KAFKA-1096
      "leader_epoch_fencing",           \* KAFKA-1188
      "broker_epoch_fencing",           \* KIP-380
      "keep_last_isr_member",           \* KAFKA-708
      "reset_on_resign",                \* KAFKA-5310
      "stop_replica_fencing",           \* KIP-570
      "assigned_replicas_only",         \* KAFKA-1097
      "re_elect" }                      \* ADR-1

ASSUME
    /\ BrokerCount \in Nat \ {0, 1}
    /\ LastEpoch \in Nat /\ SessionCount \in Nat /\ WriteCount \in Nat /\ CrashCount \in Nat
    /\ SpareCount \in 0 .. BrokerCount - 1 /\ ReassignmentCount \in Nat
    /\ Drop \subseteq Protections

Keeps(protection) == protection \notin Drop

VARIABLES
    \* Per broker, its process
    running,            \* Whether it runs.
    incarnation,        \* The broker epoch that it registered with last (None: not running).
    born,               \* The one that its process began with: which process it is.
    \* Per broker, as a controller
    holds,              \* The controller epoch that it believes to hold, or None.
    knows,              \* What it has read: [partition, live, assignment, target, step].  live: each broker's
                        \* registration; step: of this reign's work on a reassignment: 0 not begun,
                        \* 1 its replicas are told, 2 the old ones are told to stop.
    kept,               \* The target that survived a resignation, which reset_on_resign forbids.
    \* Per broker, as a replica
    obeyed,             \* The highest controller epoch that it has obeyed.
    told,               \* The last request that it applied: [leaderEpoch, leader, version, replicas];
                        \* leader None: it was told to stop, or nothing.
    stored,             \* Whether it has a log of the partition.
    \* ZooKeeper
    controller,         \* /controller: a broker, or None.
    controllerEpoch,    \* /controller_epoch.  Its zkVersion grows with it.
    registration,       \* /brokers/ids: of each broker the incarnation that is registered, or None.
    registered,         \* Registrations so far, after the first ones.  The next one gets a larger number.
    partition,          \* The partition's state: [leader, leaderEpoch, isr, controllerEpoch, version, stamp];
                        \* stamp: registrations so far when it was written (mzxid, as czxid counts them).
    assignment,         \* /brokers/topics/T: the replicas.
    target,             \* /admin/reassign_partitions: what they shall become, or {}.
    asked,              \* Reassignments so far.
    \* The network
    sent,               \* Every batch that was ever sent, LeaderAndIsr or (replicas {}) StopReplica that
                        \* deletes; any of its requests may arrive.
    \* Ghosts
    led,                \* [leaderEpoch, broker, process] of everybody who ever led.
    completed,          \* The assignment that the last completed reassignment asked for.
    \* How much of the bounds is used
    crashes

processVars    == << running, incarnation, born >>
controllerVars == << holds, knows, kept >>
replicaVars    == << obeyed, told, stored, led >>
memberVars     == << controller, controllerEpoch, registration, registered >>
adminVars      == << assignment, target, asked, completed >>
vars == << processVars, controllerVars, replicaVars, memberVars, adminVars, partition, sent, crashes >>

----------------------------------------------------------------------------
(* Small words *)

NoPartition == [leader |-> None, leaderEpoch |-> None, isr |-> {}, controllerEpoch |-> None,
                version |-> None, stamp |-> None]
Nothing     == [partition |-> NoPartition, live |-> [b \in Brokers |-> None],
                assignment |-> {}, target |-> {}, step |-> 0]
Untold      == [leaderEpoch |-> None, leader |-> None, version |-> None, replicas |-> {}]

InOffice(b)    == holds[b] # None                       \* It believes so.
Loaded(b)      == knows[b] # Nothing
HasSession(b)  == running[b] /\ registration[b] = incarnation[b]
Gone           == { b \in Brokers : registration[b] = None }
Leads(b)       == told[b].leader = b

----------------------------------------------------------------------------
(* The beginning: all are registered, broker 0 leads, all replicas are in  *)
(* sync and were told so by the controller of epoch 0, which has gone.     *)

Assigned == 0 .. BrokerCount - SpareCount - 1

Init ==
    /\ running = [b \in Brokers |-> TRUE]
    /\ incarnation = [b \in Brokers |-> 0]
    /\ born = [b \in Brokers |-> 0]
    /\ holds = [b \in Brokers |-> None]
    /\ knows = [b \in Brokers |-> Nothing]
    /\ kept = [b \in Brokers |-> {}]
    /\ obeyed = [b \in Brokers |-> 0]
    /\ told = [b \in Brokers |->
                  IF b \in Assigned
                  THEN [leaderEpoch |-> 0, leader |-> 0, version |-> 0, replicas |-> Assigned]
                  ELSE Untold]
    /\ stored = [b \in Brokers |-> b \in Assigned]
    /\ controller = None
    /\ controllerEpoch = 0
    /\ registration = [b \in Brokers |-> 0]
    /\ registered = 0
    /\ partition = [leader |-> 0, leaderEpoch |-> 0, isr |-> Assigned, controllerEpoch |-> 0,
                    version |-> 0, stamp |-> 0]
    /\ assignment = Assigned /\ target = {} /\ asked = 0 /\ completed = Assigned
    /\ sent = { [controllerEpoch |-> 0, leaderEpoch |-> 0, leader |-> 0, version |-> 0,
                 replicas |-> Assigned,
                 live |-> [b \in Brokers |-> IF b \in Assigned THEN 0 ELSE None]] }
    /\ led = { [leaderEpoch |-> 0, broker |-> 0, process |-> 0] }
    /\ crashes = 0

----------------------------------------------------------------------------
(* Sessions and processes (SPEC.md C9).                                    *)

\* ZooKeeper ends a session, and its ephemeral nodes go.  The broker does not know yet.
Expire(b) ==
    /\ registration[b] # None
    /\ registered + Cardinality(Gone) < SessionCount
    /\ registration' = [registration EXCEPT ![b] = None]
    /\ controller' = IF controller = b THEN None ELSE controller
    /\ UNCHANGED << processVars, controllerVars, replicaVars, adminVars, controllerEpoch,
                    registered, partition, sent, crashes >>

Register(b) ==
    /\ registration[b] = None
    /\ registered' = registered + 1
    /\ registration' = [registration EXCEPT ![b] = registered + 1]
    /\ incarnation' = [incarnation EXCEPT ![b] = registered + 1]
    /\ UNCHANGED << replicaVars, adminVars, controller, controllerEpoch, partition, sent, crashes >>

\* Out of office.  reset_on_resign (KAFKA-5310): it forgets all that it knew; without, what it
\* was reassigning survives.
Resign(b) ==
    /\ holds' = [holds EXCEPT ![b] = None]
    /\ knows' = [knows EXCEPT ![b] = Nothing]
    /\ kept' = IF Keeps("reset_on_resign") \/ ~Loaded(b) THEN kept
               ELSE [kept EXCEPT ![b] = knows[b].target]

\* The broker hears that its session is over: it resigns and registers again.  What it was
\* told as a replica stands.
Notice(b) ==
    /\ running[b]
    /\ Register(b)
    /\ Resign(b)
    /\ UNCHANGED << running, born >>

\* The process dies.  ZooKeeper will know when the session expires.
Crash(b) ==
    /\ running[b]
    /\ crashes < CrashCount
    /\ crashes' = crashes + 1
    /\ running' = [running EXCEPT ![b] = FALSE]
    /\ incarnation' = [incarnation EXCEPT ![b] = None]
    /\ born' = [born EXCEPT ![b] = None]
    /\ holds' = [holds EXCEPT ![b] = None]
    /\ knows' = [knows EXCEPT ![b] = Nothing]
    /\ kept' = [kept EXCEPT ![b] = {}]
    /\ obeyed' = [obeyed EXCEPT ![b] = None]
    /\ told' = [told EXCEPT ![b] = Untold]
    /\ UNCHANGED << memberVars, adminVars, partition, stored, sent, led >>

\* Another process comes up under the same number, and knows nothing of epochs.
Restart(b) ==
    /\ ~running[b]
    /\ Register(b)
    /\ running' = [running EXCEPT ![b] = TRUE]
    /\ born' = [born EXCEPT ![b] = registered + 1]
    /\ UNCHANGED controllerVars

----------------------------------------------------------------------------
(* In and out of office (SPEC.md C1, C3).                                  *)

\* C1: one multi creates /controller and sets /controller_epoch to e + 1 at its version.
Elect(b) ==
    /\ HasSession(b)
    /\ ~InOffice(b)
    /\ controller = None
    /\ controllerEpoch < LastEpoch
    /\ controller' = b
    /\ controllerEpoch' = controllerEpoch + 1
    /\ holds' = [holds EXCEPT ![b] = controllerEpoch + 1]
    /\ UNCHANGED << processVars, knows, kept, replicaVars, adminVars, registration, registered,
                    partition, sent, crashes >>

\* C2, C3: a multi fails because /controller_epoch has another version, or a broker answers
\* with a higher controller epoch: the controller has moved, and this one resigns.
Moved(b) ==
    /\ InOffice(b)
    /\ holds[b] # controllerEpoch
    /\ Resign(b)
    /\ UNCHANGED << processVars, replicaVars, memberVars, adminVars, partition, sent, crashes >>

\* Without epoch_read_in_election_only (KAFKA-1096): a watch on /controller_epoch fires, and
\* a deposed controller takes the new epoch for its own.
AdoptEpoch(b) ==
    /\ ~Keeps("epoch_read_in_election_only")
    /\ InOffice(b)
    /\ holds[b] # controllerEpoch
    /\ holds' = [holds EXCEPT ![b] = controllerEpoch]
    /\ UNCHANGED << processVars, knows, kept, replicaVars, memberVars, adminVars, partition, sent,
                    crashes >>

----------------------------------------------------------------------------
(* What a controller does (SPEC.md C3, C6, C8 to C10).  It decides by what *)
(* it has read, which may be old.                                          *)

Alive(known) == { b \in known.partition.isr : known.live[b] # None }

\* re_elect: a leader that registered after the state was written may be another process
\* than the one that was elected, so it must lead in a new epoch.
Restarted(known) ==
    /\ Keeps("re_elect")
    /\ known.partition.leader # None
    /\ known.live[known.partition.leader] > known.partition.stamp

HasToWrite(known) ==
    IF known.partition.leader = None
    THEN Alive(known) # {}
    ELSE Restarted(known) \/ Alive(known) # known.partition.isr

\* C10: one batch at the end of an event, unless a write comes first.  It goes to every live
\* replica; once the ISR is within the target, it names the target alone (KAFKA-1097).
Batch(b, known, replicas, addressees) ==
    [controllerEpoch |-> holds[b], leaderEpoch |-> known.partition.leaderEpoch,
     leader  |-> IF replicas = {} THEN None ELSE known.partition.leader,
     version |-> IF replicas = {} THEN None ELSE known.partition.version,
     replicas |-> replicas,
     live |-> [c \in Brokers |-> IF c \in addressees THEN known.live[c] ELSE None]]

Send(batch) == sent' = IF \A c \in Brokers : batch.live[c] = None THEN sent ELSE sent \cup {batch}

Within(known) ==
    /\ known.target # {}
    /\ known.target \subseteq known.assignment
    /\ known.partition.isr \subseteq known.target

Know(b, known) ==
    /\ knows' = [knows EXCEPT ![b] = known]
    /\ IF HasToWrite(known) THEN UNCHANGED sent
       ELSE Send(Batch(b, known, IF Within(known) THEN known.target ELSE known.assignment,
                       known.assignment))

\* C6: the reign begins with reading.
Load(b) ==
    /\ InOffice(b)
    /\ ~Loaded(b)
    /\ Know(b, [partition |-> partition, live |-> registration, assignment |-> assignment,
                target |-> IF kept[b] # {} THEN kept[b] ELSE target, step |-> 0])
    /\ kept' = [kept EXCEPT ![b] = {}]
    /\ UNCHANGED << processVars, holds, replicaVars, memberVars, adminVars, partition, crashes >>

\* C9: a broker came, went or bounced.
SeeBrokers(b) ==
    /\ InOffice(b)
    /\ Loaded(b)
    /\ knows[b].live # registration
    /\ Know(b, [knows[b] EXCEPT !.live = registration])
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, crashes >>

\* The leader changed the ISR, or a write met a bad version: read the state again.
SeeState(b) ==
    /\ InOffice(b)
    /\ Loaded(b)
    /\ knows[b].partition # partition
    /\ knows' = [knows EXCEPT ![b].partition = partition]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, sent,
                    crashes >>

\* C3, C8: one multi checks /controller_epoch and sets the state at the version that the
\* controller knows; then it tells the brokers.
\* fenced_zookeeper_write (KAFKA-6082) is that check.
MayWrite(b) == Keeps("fenced_zookeeper_write") => holds[b] = controllerEpoch

WriteAt(b, leader, isr, step) ==
    LET written == [leader |-> leader, leaderEpoch |-> partition.leaderEpoch + 1, isr |-> isr,
                    controllerEpoch |-> holds[b], version |-> partition.version + 1,
                    stamp |-> registered]
    IN  /\ knows[b].partition.version = partition.version
        /\ MayWrite(b)
        /\ partition.version < WriteCount
        /\ partition' = written
        /\ Know(b, [knows[b] EXCEPT !.partition = written, !.step = step])
        /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, crashes >>

Write(b, leader, isr) == WriteAt(b, leader, isr, knows[b].step)

Due(b) == InOffice(b) /\ Loaded(b) /\ HasToWrite(knows[b])

LeaderStays(known) ==
    /\ known.partition.leader \in Alive(known)
    /\ ~Restarted(known)

\* The leader is there, a follower has gone.
ShrinkDead(b) ==
    /\ Due(b)
    /\ LeaderStays(knows[b])
    /\ Write(b, knows[b].partition.leader, Alive(knows[b]))

\* A clean election: somebody who is in sync and lives.  Kafka takes the first in the order
\* of the assignment; here it may be any.
ElectLeader(b, leader) ==
    /\ Due(b)
    /\ ~LeaderStays(knows[b])
    /\ leader \in Alive(knows[b])
    /\ Write(b, leader, Alive(knows[b]))

\* keep_last_isr_member (KAFKA-708): nobody in sync lives.  Nobody leads, and the last
\* member stays in the ISR, so that no other replica is ever taken for in sync.
NoLeader(b) ==
    /\ Due(b)
    /\ Alive(knows[b]) = {}
    /\ IF Keeps("keep_last_isr_member")
       THEN \E last \in knows[b].partition.isr : Write(b, None, {last})
       ELSE Write(b, None, {})

----------------------------------------------------------------------------
(* Reassignment (SPEC.md C12), step by step; a fail-over may come at any.  *)

\* 1: an admin names the target: any other set of as many brokers.
Ask(new) ==
    /\ target = {}
    /\ asked < ReassignmentCount
    /\ Cardinality(new) = Cardinality(assignment)
    /\ new # assignment
    /\ target' = new
    /\ asked' = asked + 1
    /\ UNCHANGED << processVars, controllerVars, replicaVars, memberVars, assignment, completed,
                    partition, sent, crashes >>

\* The watch fires.  What is under way already is known.
SeeTarget(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].target = {} /\ target # {}
    /\ knows' = [knows EXCEPT ![b].target = target]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, sent,
                    crashes >>

\* A fenced write of the assignment or of the entry.
Assigning(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].target # {}
    /\ MayWrite(b)
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, asked, partition, sent, crashes >>

Grown(known) == known.target \subseteq known.assignment

\* 2: old and new replicas together.
Grow(b) ==
    /\ Assigning(b)
    /\ ~Grown(knows[b])
    /\ \A c \in knows[b].target : knows[b].live[c] # None
    /\ assignment' = knows[b].assignment \cup knows[b].target
    /\ knows' = [knows EXCEPT ![b].assignment = assignment']
    /\ UNCHANGED << target, completed >>

\* Or not at all: a broker of the target is dead.  The entry goes, if it is the one.
Refuse(b) ==
    /\ Assigning(b)
    /\ ~Grown(knows[b])
    /\ \E c \in knows[b].target : knows[b].live[c] = None
    /\ target' = IF target = knows[b].target THEN {} ELSE target
    /\ knows' = [knows EXCEPT ![b].target = {}, ![b].step = 0]
    /\ UNCHANGED << assignment, completed >>

\* 3, 5, 6 are for a partition that has a leader and needs no election.
UnderWay(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].target # {}
    /\ Grown(knows[b])
    /\ knows[b].assignment # knows[b].target
    /\ ~HasToWrite(knows[b])
    /\ knows[b].partition.leader # None

IsMoved(known) == known.partition.isr = known.target /\ known.partition.leader \in known.target

\* 3: the leader epoch grows, so that leader and new replicas learn of the assignment.
RaiseEpoch(b) ==
    /\ UnderWay(b)
    /\ knows[b].step = 0
    /\ WriteAt(b, knows[b].partition.leader, knows[b].partition.isr, 1)

\* 5: the whole target is in sync: a leader within it, the ISR without the old replicas.
Move(b, leader) ==
    /\ UnderWay(b)
    /\ knows[b].step = 1
    /\ ~IsMoved(knows[b])
    /\ knows[b].target \subseteq knows[b].partition.isr
    /\ leader \in knows[b].target
    /\ knows[b].partition.leader \in knows[b].target => leader = knows[b].partition.leader
    /\ WriteAt(b, leader, knows[b].target, 1)

\* 6: the old replicas are told to stop and delete.
StopOld(b) ==
    /\ UnderWay(b)
    /\ knows[b].step = 1
    /\ IsMoved(knows[b])
    /\ Send(Batch(b, knows[b], {}, knows[b].assignment \ knows[b].target))
    /\ knows' = [knows EXCEPT ![b].step = 2]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, crashes >>

\* 7: the assignment becomes the target.
Retire(b) ==
    /\ Assigning(b)
    /\ Grown(knows[b])
    /\ knows[b].assignment # knows[b].target
    /\ knows[b].step = 2
    /\ assignment' = knows[b].target
    /\ knows' = [knows EXCEPT ![b].assignment = knows[b].target]
    /\ UNCHANGED << target, completed >>

\* 8: the entry goes.
RemoveEntry(b) ==
    /\ Assigning(b)
    /\ knows[b].assignment = knows[b].target
    /\ completed' = IF target # {} THEN target ELSE completed
    /\ target' = {}
    /\ knows' = [knows EXCEPT ![b].target = {}, ![b].step = 0]
    /\ UNCHANGED assignment

----------------------------------------------------------------------------
(* What a broker does (SPEC.md C2, R8).                                    *)

\* leader_epoch_fencing (KAFKA-1188): LeaderAndIsr is applied only if its leader epoch is higher.
\* stop_replica_fencing (KIP-570): StopReplica is applied unless its leader epoch is lower.
Applies(b, batch) ==
    IF batch.replicas # {}
    THEN Keeps("leader_epoch_fencing") => batch.leaderEpoch > told[b].leaderEpoch
    ELSE Keeps("stop_replica_fencing") => batch.leaderEpoch >= told[b].leaderEpoch

Max(a, b) == IF a >= b THEN a ELSE b

\* What it was told, by a request that applies.  A replica that was deleted remembers the epoch.
After(b, batch) ==
    IF batch.replicas # {}
    THEN [leaderEpoch |-> batch.leaderEpoch, leader |-> batch.leader, version |-> batch.version,
          replicas |-> batch.replicas]
    ELSE [Untold EXCEPT !.leaderEpoch = Max(batch.leaderEpoch, told[b].leaderEpoch)]

\* C2: a request arrives.
\* broker_epoch_fencing (KIP-380): it is meant for this incarnation, not for an earlier one.
\* controller_epoch_fencing (KAFKA-532): no higher controller epoch was obeyed before.
Deliver(b, batch) ==
    LET now == IF Applies(b, batch) THEN After(b, batch) ELSE told[b]
    IN  /\ running[b]
        /\ batch.live[b] # None
        /\ Keeps("broker_epoch_fencing") => batch.live[b] >= incarnation[b]
        /\ Keeps("controller_epoch_fencing") => batch.controllerEpoch >= obeyed[b]
        /\ obeyed' = [obeyed EXCEPT ![b] = batch.controllerEpoch]
        /\ told' = [told EXCEPT ![b] = now]
        /\ stored' = IF Applies(b, batch) THEN [stored EXCEPT ![b] = batch.replicas # {}] ELSE stored
        /\ led' = IF now.leader = b
                  THEN led \cup { [leaderEpoch |-> now.leaderEpoch, broker |-> b, process |-> born[b]] }
                  ELSE led
        /\ UNCHANGED << processVars, controllerVars, memberVars, adminVars, partition, sent, crashes >>

\* R8: a leader changes the ISR by compare-and-set at the version that it knows, which a
\* deposed one does not.
ChangeIsr(b, isr) ==
    /\ running[b]
    /\ Leads(b)
    /\ told[b].version = partition.version
    /\ partition.version < WriteCount
    /\ partition' = [partition EXCEPT !.isr = isr, !.version = @ + 1, !.stamp = registered]
    /\ told' = [told EXCEPT ![b].version = partition.version + 1]
    /\ UNCHANGED << processVars, controllerVars, obeyed, stored, led, memberVars, adminVars, sent,
                    crashes >>

\* A follower lags.
ShrinkIsr(b, f) ==
    /\ f # b /\ f \in partition.isr
    /\ ChangeIsr(b, partition.isr \ {f})

\* A follower that fetches in the leader's epoch has caught up.
\* assigned_replicas_only (KAFKA-1097): it is one of those that the leader was told.
ExpandIsr(b, f) ==
    /\ f # b /\ f \notin partition.isr
    /\ Keeps("assigned_replicas_only") => f \in told[b].replicas
    /\ running[f]
    /\ told[f].leader = b /\ told[f].leaderEpoch = told[b].leaderEpoch
    /\ ChangeIsr(b, partition.isr \cup {f})

----------------------------------------------------------------------------

Next ==
    \/ \E new \in SUBSET Brokers : Ask(new)
    \/ \E b \in Brokers :
        \/ Expire(b)
        \/ Notice(b)
        \/ Crash(b)
        \/ Restart(b)
        \/ Elect(b)
        \/ Moved(b)
        \/ AdoptEpoch(b)
        \/ Load(b)
        \/ SeeBrokers(b)
        \/ SeeState(b)
        \/ ShrinkDead(b)
        \/ \E leader \in Brokers : ElectLeader(b, leader)
        \/ NoLeader(b)
        \/ SeeTarget(b)
        \/ Grow(b)
        \/ Refuse(b)
        \/ RaiseEpoch(b)
        \/ \E leader \in Brokers : Move(b, leader)
        \/ StopOld(b)
        \/ Retire(b)
        \/ RemoveEntry(b)
        \/ \E batch \in sent : Deliver(b, batch)
        \/ \E f \in Brokers : ShrinkIsr(b, f)
        \/ \E f \in Brokers : ExpandIsr(b, f)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What must hold, named as in the table of invariants (CTRL-FENCE,        *)
(* EPOCH-MONO, ISR-IN-AR, ISR-NONEMPTY, ASSIGN, COMMIT-SAFE).              *)

BrokersOrNone   == Brokers \cup {None}
Epochs          == 0 .. LastEpoch
Incarnations    == 0 .. SessionCount
Versions        == 0 .. WriteCount
Registrations   == [Brokers -> Incarnations \cup {None}]
PartitionStates ==
    [leader : BrokersOrNone, leaderEpoch : Versions, isr : SUBSET Brokers,
     controllerEpoch : Epochs, version : Versions, stamp : Incarnations]

TypeOK ==
    /\ \A b \in Brokers :
          /\ running[b] \in BOOLEAN
          /\ incarnation[b] \in Incarnations \cup {None}
          /\ born[b] \in Incarnations \cup {None}
          /\ running[b] <=> born[b] # None
          /\ holds[b] \in Epochs \cup {None}
          /\ Loaded(b) => /\ InOffice(b)
                          /\ knows[b].partition \in PartitionStates
                          /\ knows[b].live \in Registrations
                          /\ knows[b].assignment \subseteq Brokers
                          /\ knows[b].target \subseteq Brokers
                          /\ knows[b].step \in 0 .. 2
          /\ kept[b] \subseteq Brokers
          /\ obeyed[b] \in Epochs \cup {None}
          /\ told[b] \in [leaderEpoch : Versions \cup {None}, leader : BrokersOrNone,
                          version : Versions \cup {None}, replicas : SUBSET Brokers]
          /\ stored[b] \in BOOLEAN
    /\ controller \in BrokersOrNone
    /\ controllerEpoch \in Epochs
    /\ registration \in Registrations
    /\ registered \in Incarnations
    /\ partition \in PartitionStates
    /\ \A batch \in sent :
          batch \in [controllerEpoch : Epochs, leaderEpoch : Versions, leader : BrokersOrNone,
                     version : Versions \cup {None}, replicas : SUBSET Brokers,
                     live : Registrations]
    /\ \A one \in led :
          one \in [leaderEpoch : Versions, broker : Brokers, process : Incarnations]
    /\ crashes \in 0 .. CrashCount
    /\ assignment \subseteq Brokers /\ target \subseteq Brokers /\ completed \subseteq Brokers
    /\ asked \in 0 .. ReassignmentCount

\* CTRL-FENCE: no two brokers hold one controller epoch.
CtrlFence ==
    \A b, c \in Brokers : (InOffice(b) /\ holds[b] = holds[c]) => b = c

\* CTRL-FENCE of a step: an election is written by the controller in office, and no running
\* broker obeys a lower controller epoch after a higher one.
CtrlFenceStep ==
    /\ partition'.leaderEpoch # partition.leaderEpoch => partition'.controllerEpoch = controllerEpoch
    /\ \A b \in Brokers : (running[b] /\ running'[b]) => obeyed[b] <= obeyed'[b]
CtrlFenceSteps == [][CtrlFenceStep]_vars

\* EPOCH-MONO: one process ever leads in a leader epoch.
EpochMono == \A one, other \in led : one.leaderEpoch = other.leaderEpoch => one = other

\* EPOCH-MONO of a step: leader epochs never go back, neither in ZooKeeper nor at a running broker.
EpochMonoStep ==
    /\ partition.leaderEpoch <= partition'.leaderEpoch
    /\ \A b \in Brokers : (running[b] /\ running'[b]) => told[b].leaderEpoch <= told'[b].leaderEpoch
EpochMonoSteps == [][EpochMonoStep]_vars

\* ISR-IN-AR: the leader is in the ISR, or nobody leads; the ISR is part of the assignment.
IsrInAr ==
    /\ partition.leader \in partition.isr \cup {None}
    /\ partition.isr \subseteq assignment

\* ISR-NONEMPTY: somebody is known to hold everything.
IsrNonempty == partition.isr # {}

\* ASSIGN: with no reassignment pending, the assignment is what the last completed one asked for.
Assign == target = {} => assignment = completed

\* COMMIT-SAFE: no member of the ISR has deleted its log.
CommitSafe == \A b \in partition.isr : stored[b]

=============================================================================
