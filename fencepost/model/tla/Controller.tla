---------------------------- MODULE Controller ----------------------------
(***************************************************************************)
(* Who is in charge of a Kafka cluster, as ZooKeeper-era Kafka decides it, *)
(* and what keeps one that is in charge no more from doing harm.           *)
(*                                                                         *)
(* Each broker registers in ZooKeeper under a session.  One of them holds  *)
(* /controller, an ephemeral node: that broker is the controller.  It      *)
(* watches the registrations, elects the leader of each partition, writes  *)
(* leader and in-sync replicas (ISR) to ZooKeeper, and tells the brokers   *)
(* by LeaderAndIsr requests.  Here there is one topic with one partition,  *)
(* and every broker has a replica of it.                                   *)
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
(*   ADR-1       a leader restarted while no controller watched, and led   *)
(*               the same epoch a second time (docs/decisions/0001)        *)
(*                                                                         *)
(* Each protection has a name.  The constant Drop is the set of those to   *)
(* do without: the empty set is Kafka as it should be.                     *)
(*                                                                         *)
(* What is one step here and more in Kafka: a multi and the batch that is  *)
(* sent after it (a batch that was never sent is one that never arrives);  *)
(* a read of state and registrations at the beginning of a reign.  That a  *)
(* follower has caught up is decided freely: Replication.tla has the       *)
(* records.                                                                *)
(*                                                                         *)
(* The same system, written in Python, is fencepost/model/controller.py;   *)
(* the two have the same states, and a test compares them.                 *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    BrokerCount,    \* Brokers are numbered from 0; each has a replica.
    LastEpoch,      \* The highest controller epoch: so many elections of a controller.
    SessionCount,   \* Sessions that expire.
    WriteCount,     \* Writes of the partition's state, so the highest zkVersion.
    CrashCount,     \* Processes that die.
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
      "re_elect" }                      \* ADR-1

ASSUME
    /\ BrokerCount \in Nat \ {0, 1}
    /\ LastEpoch \in Nat /\ SessionCount \in Nat /\ WriteCount \in Nat /\ CrashCount \in Nat
    /\ Drop \subseteq Protections

Keeps(protection) == protection \notin Drop

VARIABLES
    \* Per broker, its process
    running,            \* Whether it runs.
    incarnation,        \* The broker epoch that it registered with last (None: not running).
    born,               \* The one that its process began with: which process it is.
    \* Per broker, as a controller
    holds,              \* The controller epoch that it believes to hold, or None.
    knows,              \* What it has read: [partition, live]; live has each broker's registration.
    \* Per broker, as a replica
    obeyed,             \* The highest controller epoch that it has obeyed.
    told,               \* The last LeaderAndIsr that it applied: [leaderEpoch, leader, version].
    \* ZooKeeper
    controller,         \* /controller: a broker, or None.
    controllerEpoch,    \* /controller_epoch.  Its zkVersion grows with it.
    registration,       \* /brokers/ids: of each broker the incarnation that is registered, or None.
    registered,         \* Registrations so far, after the first ones.  The next one gets a larger number.
    partition,          \* The partition's state: [leader, leaderEpoch, isr, controllerEpoch, version, stamp];
                        \* stamp: registrations so far when it was written (mzxid, as czxid counts them).
    \* The network
    sent,               \* Every batch of LeaderAndIsr that was ever sent; any of its requests may arrive.
    \* A ghost
    led,                \* [leaderEpoch, broker, process] of everybody who ever led.
    \* How much of the bounds is used
    crashes

processVars    == << running, incarnation, born >>
controllerVars == << holds, knows >>
replicaVars    == << obeyed, told, led >>
memberVars     == << controller, controllerEpoch, registration, registered >>
vars == << processVars, controllerVars, replicaVars, memberVars, partition, sent, crashes >>

----------------------------------------------------------------------------
(* Small words *)

NoPartition == [leader |-> None, leaderEpoch |-> None, isr |-> {}, controllerEpoch |-> None,
                version |-> None, stamp |-> None]
Nothing     == [partition |-> NoPartition, live |-> [b \in Brokers |-> None]]
Untold      == [leaderEpoch |-> None, leader |-> None, version |-> None]

InOffice(b)    == holds[b] # None                       \* It believes so.
Loaded(b)      == knows[b] # Nothing
HasSession(b)  == running[b] /\ registration[b] = incarnation[b]
Gone           == { b \in Brokers : registration[b] = None }
Leads(b)       == told[b].leader = b

----------------------------------------------------------------------------
(* The beginning: all are registered, broker 0 leads, all are in sync and  *)
(* were told so by the controller of epoch 0, which has gone.              *)

Init ==
    /\ running = [b \in Brokers |-> TRUE]
    /\ incarnation = [b \in Brokers |-> 0]
    /\ born = [b \in Brokers |-> 0]
    /\ holds = [b \in Brokers |-> None]
    /\ knows = [b \in Brokers |-> Nothing]
    /\ obeyed = [b \in Brokers |-> 0]
    /\ told = [b \in Brokers |-> [leaderEpoch |-> 0, leader |-> 0, version |-> 0]]
    /\ controller = None
    /\ controllerEpoch = 0
    /\ registration = [b \in Brokers |-> 0]
    /\ registered = 0
    /\ partition = [leader |-> 0, leaderEpoch |-> 0, isr |-> Brokers, controllerEpoch |-> 0,
                    version |-> 0, stamp |-> 0]
    /\ sent = { [controllerEpoch |-> 0, leaderEpoch |-> 0, leader |-> 0, version |-> 0,
                 live |-> [b \in Brokers |-> 0]] }
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
    /\ UNCHANGED << processVars, controllerVars, replicaVars, controllerEpoch, registered,
                    partition, sent, crashes >>

Register(b) ==
    /\ registration[b] = None
    /\ registered' = registered + 1
    /\ registration' = [registration EXCEPT ![b] = registered + 1]
    /\ incarnation' = [incarnation EXCEPT ![b] = registered + 1]
    /\ UNCHANGED << replicaVars, controller, controllerEpoch, partition, sent, crashes >>

\* The broker hears that its session is over: it resigns, forgets all that it knew as a
\* controller (KAFKA-5310), and registers again.  What it was told as a replica stands.
Notice(b) ==
    /\ running[b]
    /\ Register(b)
    /\ holds' = [holds EXCEPT ![b] = None]
    /\ knows' = [knows EXCEPT ![b] = Nothing]
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
    /\ obeyed' = [obeyed EXCEPT ![b] = None]
    /\ told' = [told EXCEPT ![b] = Untold]
    /\ UNCHANGED << memberVars, partition, sent, led >>

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
    /\ UNCHANGED << processVars, knows, replicaVars, registration, registered, partition, sent,
                    crashes >>

\* C2, C3: a multi fails because /controller_epoch has another version, or a broker answers
\* with a higher controller epoch: the controller has moved, and this one resigns.
Moved(b) ==
    /\ InOffice(b)
    /\ holds[b] # controllerEpoch
    /\ holds' = [holds EXCEPT ![b] = None]
    /\ knows' = [knows EXCEPT ![b] = Nothing]
    /\ UNCHANGED << processVars, replicaVars, memberVars, partition, sent, crashes >>

\* Without epoch_read_in_election_only (KAFKA-1096): a watch on /controller_epoch fires, and
\* a deposed controller takes the new epoch for its own.
AdoptEpoch(b) ==
    /\ ~Keeps("epoch_read_in_election_only")
    /\ InOffice(b)
    /\ holds[b] # controllerEpoch
    /\ holds' = [holds EXCEPT ![b] = controllerEpoch]
    /\ UNCHANGED << processVars, knows, replicaVars, memberVars, partition, sent, crashes >>

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

\* C10: one batch at the end of an event, unless a write comes first.
Batch(b, known) ==
    [controllerEpoch |-> holds[b], leaderEpoch |-> known.partition.leaderEpoch,
     leader |-> known.partition.leader, version |-> known.partition.version, live |-> known.live]

Know(b, known) ==
    /\ knows' = [knows EXCEPT ![b] = known]
    /\ sent' = IF HasToWrite(known) THEN sent ELSE sent \cup { Batch(b, known) }

\* C6: the reign begins with reading.
Load(b) ==
    /\ InOffice(b)
    /\ ~Loaded(b)
    /\ Know(b, [partition |-> partition, live |-> registration])
    /\ UNCHANGED << processVars, holds, replicaVars, memberVars, partition, crashes >>

\* C9: a broker came, went or bounced.
SeeBrokers(b) ==
    /\ InOffice(b)
    /\ Loaded(b)
    /\ knows[b].live # registration
    /\ Know(b, [knows[b] EXCEPT !.live = registration])
    /\ UNCHANGED << processVars, holds, replicaVars, memberVars, partition, crashes >>

\* The leader changed the ISR, or a write met a bad version: read the state again.
SeeState(b) ==
    /\ InOffice(b)
    /\ Loaded(b)
    /\ knows[b].partition # partition
    /\ knows' = [knows EXCEPT ![b].partition = partition]
    /\ UNCHANGED << processVars, holds, replicaVars, memberVars, partition, sent, crashes >>

\* C3, C8: one multi checks /controller_epoch and sets the state at the version that the
\* controller knows; then it tells the brokers.
\* fenced_zookeeper_write (KAFKA-6082) is that check.
Write(b, leader, isr) ==
    LET written == [leader |-> leader, leaderEpoch |-> partition.leaderEpoch + 1, isr |-> isr,
                    controllerEpoch |-> holds[b], version |-> partition.version + 1,
                    stamp |-> registered]
    IN  /\ knows[b].partition.version = partition.version
        /\ Keeps("fenced_zookeeper_write") => holds[b] = controllerEpoch
        /\ partition.version < WriteCount
        /\ partition' = written
        /\ Know(b, [knows[b] EXCEPT !.partition = written])
        /\ UNCHANGED << processVars, holds, replicaVars, memberVars, crashes >>

MayWrite(b) == InOffice(b) /\ Loaded(b) /\ HasToWrite(knows[b])

LeaderStays(known) ==
    /\ known.partition.leader \in Alive(known)
    /\ ~Restarted(known)

\* The leader is there, a follower has gone.
ShrinkDead(b) ==
    /\ MayWrite(b)
    /\ LeaderStays(knows[b])
    /\ Write(b, knows[b].partition.leader, Alive(knows[b]))

\* A clean election: somebody who is in sync and lives.  Kafka takes the first in the order
\* of the assignment; here it may be any.
ElectLeader(b, leader) ==
    /\ MayWrite(b)
    /\ ~LeaderStays(knows[b])
    /\ leader \in Alive(knows[b])
    /\ Write(b, leader, Alive(knows[b]))

\* keep_last_isr_member (KAFKA-708): nobody in sync lives.  Nobody leads, and the last
\* member stays in the ISR, so that no other replica is ever taken for in sync.
NoLeader(b) ==
    /\ MayWrite(b)
    /\ Alive(knows[b]) = {}
    /\ IF Keeps("keep_last_isr_member")
       THEN \E last \in knows[b].partition.isr : Write(b, None, {last})
       ELSE Write(b, None, {})

----------------------------------------------------------------------------
(* What a broker does (SPEC.md C2, R8).                                    *)

\* C2: a LeaderAndIsr arrives.
\* broker_epoch_fencing (KIP-380): it is meant for this incarnation, not for an earlier one.
\* controller_epoch_fencing (KAFKA-532): no higher controller epoch was obeyed before.
\* leader_epoch_fencing (KAFKA-1188): it is applied only if its leader epoch is higher.
Deliver(b, batch) ==
    LET applies == Keeps("leader_epoch_fencing") => batch.leaderEpoch > told[b].leaderEpoch
        now     == IF applies
                   THEN [leaderEpoch |-> batch.leaderEpoch, leader |-> batch.leader,
                         version |-> batch.version]
                   ELSE told[b]
    IN  /\ running[b]
        /\ batch.live[b] # None
        /\ Keeps("broker_epoch_fencing") => batch.live[b] >= incarnation[b]
        /\ Keeps("controller_epoch_fencing") => batch.controllerEpoch >= obeyed[b]
        /\ obeyed' = [obeyed EXCEPT ![b] = batch.controllerEpoch]
        /\ told' = [told EXCEPT ![b] = now]
        /\ led' = IF now.leader = b
                  THEN led \cup { [leaderEpoch |-> now.leaderEpoch, broker |-> b, process |-> born[b]] }
                  ELSE led
        /\ UNCHANGED << processVars, controllerVars, memberVars, partition, sent, crashes >>

\* R8: a leader changes the ISR by compare-and-set at the version that it knows, which a
\* deposed one does not.
ChangeIsr(b, isr) ==
    /\ running[b]
    /\ Leads(b)
    /\ told[b].version = partition.version
    /\ partition.version < WriteCount
    /\ partition' = [partition EXCEPT !.isr = isr, !.version = @ + 1, !.stamp = registered]
    /\ told' = [told EXCEPT ![b].version = partition.version + 1]
    /\ UNCHANGED << processVars, controllerVars, obeyed, led, memberVars, sent, crashes >>

\* A follower lags.
ShrinkIsr(b, f) ==
    /\ f # b /\ f \in partition.isr
    /\ ChangeIsr(b, partition.isr \ {f})

\* A follower that fetches in the leader's epoch has caught up.
ExpandIsr(b, f) ==
    /\ f # b /\ f \notin partition.isr
    /\ running[f]
    /\ told[f].leader = b /\ told[f].leaderEpoch = told[b].leaderEpoch
    /\ ChangeIsr(b, partition.isr \cup {f})

----------------------------------------------------------------------------

Next ==
    \E b \in Brokers :
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
        \/ \E batch \in sent : Deliver(b, batch)
        \/ \E f \in Brokers : ShrinkIsr(b, f)
        \/ \E f \in Brokers : ExpandIsr(b, f)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What must hold, named as in the table of invariants (CTRL-FENCE,        *)
(* EPOCH-MONO, ISR-IN-AR, ISR-NONEMPTY).                                   *)

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
          /\ obeyed[b] \in Epochs \cup {None}
          /\ told[b] = Untold \/ told[b] \in [leaderEpoch : Versions, leader : BrokersOrNone,
                                              version : Versions]
    /\ controller \in BrokersOrNone
    /\ controllerEpoch \in Epochs
    /\ registration \in Registrations
    /\ registered \in Incarnations
    /\ partition \in PartitionStates
    /\ \A batch \in sent :
          batch \in [controllerEpoch : Epochs, leaderEpoch : Versions, leader : BrokersOrNone,
                     version : Versions, live : Registrations]
    /\ \A one \in led :
          one \in [leaderEpoch : Versions, broker : Brokers, process : Incarnations]
    /\ crashes \in 0 .. CrashCount

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
    /\ partition.isr \subseteq Brokers

\* ISR-NONEMPTY: somebody is known to hold everything.
IsrNonempty == partition.isr # {}

=============================================================================
