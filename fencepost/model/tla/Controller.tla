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
(* deleted by StopReplica requests.  An admin may ask to DELETE the topic: *)
(* no leader is elected any more, all replicas are deleted, and when every *)
(* broker has answered the topic's nodes go.  A broker may ask to be SHUT  *)
(* DOWN: its leadership moves to another one, it leaves the ISR, and then  *)
(* it is told that it may stop.  A controller may go at any step, and its  *)
(* successor goes on from what stands in ZooKeeper.                        *)
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
(*   KAFKA-1681  a new controller did not take up its predecessor's        *)
(*               deletions                                                 *)
(*   KAFKA-6650  a topic that was half deleted could not be deleted        *)
(*   KAFKA-340   leadership went to a replica that was not in sync         *)
(*   KAFKA-14140 a broker that was stopping got back into the ISR          *)
(*   KAFKA-7235  a request to stop, sent before a restart, took a broker   *)
(*               that stays out of service                                 *)
(*   KAFKA-2729  a lost LeaderAndIsr was not sent again: its leader never  *)
(*               changes the ISR again                                     *)
(*   KAFKA-1382  a leader did not hear that its change of the ISR was      *)
(*               written, and could never change it again                  *)
(*   KAFKA-13407 a broker was elected, did not hear of it, and did not     *)
(*               take its own name in /controller for what it is           *)
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
(* waits for the answers to StopReplica but in a deletion of the topic.    *)
(* Reassignment and deletion do not overlap.  UpdateMetadata, as far as it *)
(* is here (who is stopping), travels with LeaderAndIsr.  A deleted replica's leader epoch *)
(* is remembered while its process lives, so that an older request cannot  *)
(* bring the replica back: Kafka has that from the order of a connection.  *)
(*                                                                         *)
(* The same system, written in Python, is fencepost/model/controller/controller_system.py;   *)
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
    DeletionCount,  \* 1 if the topic may be deleted, else 0.
    ShutdownCount,  \* ControlledShutdown requests.
    UnheardCount,   \* Writes that are done and whose reply is lost: elections of a controller, smaller ISRs;
                    \* without resend_until_answered also LeaderAndIsr requests that are lost.
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
      "resume_deletions",               \* KAFKA-1681
      "offline_without_state",          \* KAFKA-6650
      "last_in_sync_stays",             \* KAFKA-340
      "staying_isr_members_only",       \* KAFKA-14140
      "shutdown_fencing",               \* KAFKA-7235
      "names_me",                       \* KAFKA-13407
      "accept_own_isr_write",           \* KAFKA-1382
      "resend_until_answered",          \* KAFKA-2729
      "re_elect" }                      \* ADR-1

ASSUME
    /\ BrokerCount \in Nat \ {0, 1}
    /\ LastEpoch \in Nat /\ SessionCount \in Nat /\ WriteCount \in Nat /\ CrashCount \in Nat
    /\ SpareCount \in 0 .. BrokerCount - 1 /\ ReassignmentCount \in Nat
    /\ DeletionCount \in 0 .. 1 /\ ShutdownCount \in Nat /\ UnheardCount \in Nat
    /\ Drop \subseteq Protections

Keeps(protection) == protection \notin Drop

VARIABLES
    \* Per broker, its process
    running,            \* Whether it runs.
    incarnation,        \* The broker epoch that it registered with last (None: not running).
    born,               \* The one that its process began with: which process it is.
    \* Per broker, as a controller
    holds,              \* The controller epoch that it believes to hold, or None.
    knows,              \* What it has read: [partition, live, assignment, target, step, deletion, phases,
                        \* leaving, out].  live: each broker's registration.  step: of this reign's work on a
                        \* reassignment: 0 not begun, 1 its replicas are told, 2 the state is the target's,
                        \* 3 the old ones are told to stop; None: nothing is read yet.  deletion: "none", "under way" or "overlooked";
                        \* phases: each replica's state in it.  leaving: of each broker the incarnation that
                        \* asked to stop, or None; out: those that this controller took out of the ISR.
    kept,               \* The target that survived a resignation, which reset_on_resign forbids.
    \* Per broker, as a replica
    obeyed,             \* The highest controller epoch that it has obeyed.
    told,               \* The last request that it applied: [leaderEpoch, leader, version, replicas, leaving];
                        \* leader None: it was told to stop, or nothing; leaving: who is stopping.
    stored,             \* Whether it has a log of the partition.
    \* ZooKeeper
    controller,         \* /controller: a broker, or None.
    controllerEpoch,    \* /controller_epoch.  Its zkVersion grows with it.
    registration,       \* /brokers/ids: of each broker the incarnation that is registered, or None.
    registered,         \* Registrations so far, after the first ones.  The next one gets a larger number.
    unheard,            \* Writes so far whose reply was lost, and requests that were.
    partition,          \* The partition's state: [leader, leaderEpoch, isr, controllerEpoch, version, stamp];
                        \* stamp: registrations so far when it was written (mzxid, as czxid counts them).
    assignment,         \* /brokers/topics/T: the replicas; {}: the node is gone.
    target,             \* /admin/reassign_partitions: what they shall become, or {}.
    asked,              \* Reassignments so far.
    deleting,           \* Whether the topic stands in /admin/delete_topics.
    \* The network
    sent,               \* Every batch that was ever sent, LeaderAndIsr or (replicas {}) StopReplica that
                        \* deletes; any of its requests may arrive.
    stopping,           \* [broker, incarnation] of every ControlledShutdown request that was ever sent.
    \* Ghosts
    led,                \* [leaderEpoch, broker, process] of everybody who ever led.
    completed,          \* The assignment that the last completed reassignment asked for.
    \* How much of the bounds is used
    crashes

processVars    == << running, incarnation, born >>
controllerVars == << holds, knows, kept >>
replicaVars    == << obeyed, told, stored, led >>
memberVars     == << controller, controllerEpoch, registration, registered, unheard >>
adminVars      == << assignment, target, asked, deleting, completed >>
restVars       == << stopping, crashes >>
vars == << processVars, controllerVars, replicaVars, memberVars, adminVars, partition, sent, restVars >>

----------------------------------------------------------------------------
(* Small words *)

NoPartition == [leader |-> None, leaderEpoch |-> None, isr |-> {}, controllerEpoch |-> None,
                version |-> None, stamp |-> None]
Nothing     == [partition |-> NoPartition, live |-> [b \in Brokers |-> None],
                assignment |-> {}, target |-> {}, step |-> None, deletion |-> "none",
                phases |-> [b \in Brokers |-> "Offline"], leaving |-> [b \in Brokers |-> None],
                out |-> {}]
Untold      == [leaderEpoch |-> None, leader |-> None, version |-> None, replicas |-> {},
                leaving |-> {}]

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
                  THEN [Untold EXCEPT !.leaderEpoch = 0, !.leader = 0, !.version = 0,
                                      !.replicas = Assigned]
                  ELSE Untold]
    /\ stored = [b \in Brokers |-> b \in Assigned]
    /\ controller = None
    /\ controllerEpoch = 0
    /\ registration = [b \in Brokers |-> 0]
    /\ registered = 0 /\ unheard = 0
    /\ partition = [leader |-> 0, leaderEpoch |-> 0, isr |-> Assigned, controllerEpoch |-> 0,
                    version |-> 0, stamp |-> 0]
    /\ assignment = Assigned /\ target = {} /\ asked = 0 /\ completed = Assigned
    /\ deleting = FALSE
    /\ stopping = {}
    /\ sent = { [controllerEpoch |-> 0, leaderEpoch |-> 0, leader |-> 0, version |-> 0,
                 replicas |-> Assigned, leaving |-> {},
                 live |-> [b \in Brokers |-> IF b \in Assigned THEN 0 ELSE None]] }
    /\ led = { [leaderEpoch |-> 0, broker |-> 0, process |-> 0] }
    /\ crashes = 0

----------------------------------------------------------------------------
(* Sessions and processes (rule C9).                                       *)

\* ZooKeeper ends a session, and its ephemeral nodes go.  The broker does not know yet.
EndSession(b) ==
    /\ registration[b] # None
    /\ registered + Cardinality(Gone) < SessionCount
    /\ registration' = [registration EXCEPT ![b] = None]
    /\ controller' = IF controller = b THEN None ELSE controller
    /\ UNCHANGED << controllerEpoch, registered, unheard >>

Expire(b) ==
    /\ EndSession(b)
    /\ UNCHANGED << processVars, controllerVars, replicaVars, adminVars, partition, sent, restVars >>

Register(b) ==
    /\ registration[b] = None
    /\ registered' = registered + 1
    /\ registration' = [registration EXCEPT ![b] = registered + 1]
    /\ incarnation' = [incarnation EXCEPT ![b] = registered + 1]
    /\ UNCHANGED << replicaVars, adminVars, controller, controllerEpoch, unheard, partition, sent,
                    restVars >>

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

\* The process ends; its log stays.
EndProcess(b) ==
    /\ running[b]
    /\ running' = [running EXCEPT ![b] = FALSE]
    /\ incarnation' = [incarnation EXCEPT ![b] = None]
    /\ born' = [born EXCEPT ![b] = None]
    /\ holds' = [holds EXCEPT ![b] = None]
    /\ knows' = [knows EXCEPT ![b] = Nothing]
    /\ kept' = [kept EXCEPT ![b] = {}]
    /\ obeyed' = [obeyed EXCEPT ![b] = None]
    /\ told' = [told EXCEPT ![b] = Untold]
    /\ UNCHANGED << adminVars, partition, stored, sent, led >>

\* It dies.  ZooKeeper will know when the session expires.
Crash(b) ==
    /\ crashes < CrashCount
    /\ crashes' = crashes + 1
    /\ EndProcess(b)
    /\ UNCHANGED << memberVars, stopping >>

\* Another process comes up under the same number, and knows nothing of epochs.
Restart(b) ==
    /\ ~running[b]
    /\ Register(b)
    /\ running' = [running EXCEPT ![b] = TRUE]
    /\ born' = [born EXCEPT ![b] = registered + 1]
    /\ UNCHANGED controllerVars

----------------------------------------------------------------------------
(* In and out of office (rule C1, C3).                                     *)

\* C1: one multi creates /controller and sets /controller_epoch to e + 1 at its version.
Win(b) ==
    /\ HasSession(b)
    /\ ~InOffice(b)
    /\ controller = None
    /\ controllerEpoch < LastEpoch
    /\ controller' = b
    /\ controllerEpoch' = controllerEpoch + 1
    /\ UNCHANGED << processVars, knows, kept, replicaVars, adminVars, registration, registered,
                    partition, sent, restVars >>

Elect(b) ==
    /\ Win(b)
    /\ holds' = [holds EXCEPT ![b] = controllerEpoch + 1]
    /\ UNCHANGED unheard

\* The multi is done, and its reply is lost.
ElectUnheard(b) ==
    /\ Win(b)
    /\ unheard < UnheardCount
    /\ unheard' = unheard + 1
    /\ UNCHANGED holds

\* names_me (KAFKA-13407): it finds itself in /controller, under its own session.
NamesMe(b) ==
    /\ UnheardCount > 0 /\ Keeps("names_me")
    /\ HasSession(b)
    /\ ~InOffice(b)
    /\ controller = b
    /\ holds' = [holds EXCEPT ![b] = controllerEpoch]
    /\ UNCHANGED << processVars, knows, kept, replicaVars, memberVars, adminVars, partition, sent,
                    restVars >>

\* C2, C3: a multi fails because /controller_epoch has another version, or a broker answers
\* with a higher controller epoch: the controller has moved, and this one resigns.
Moved(b) ==
    /\ InOffice(b)
    /\ holds[b] # controllerEpoch
    /\ Resign(b)
    /\ UNCHANGED << processVars, replicaVars, memberVars, adminVars, partition, sent, restVars >>

\* Without epoch_read_in_election_only (KAFKA-1096): a watch on /controller_epoch fires, and
\* a deposed controller takes the new epoch for its own.
AdoptEpoch(b) ==
    /\ ~Keeps("epoch_read_in_election_only")
    /\ InOffice(b)
    /\ holds[b] # controllerEpoch
    /\ holds' = [holds EXCEPT ![b] = controllerEpoch]
    /\ UNCHANGED << processVars, knows, kept, replicaVars, memberVars, adminVars, partition, sent,
                    restVars >>

----------------------------------------------------------------------------
(* What a controller does (rule C3, C6, C8 to C10).  It decides by what    *)
(* it has read, which may be old.                                          *)

\* Who may lead or be in sync: those who live and are not stopping.
Leaving(known)     == { b \in Brokers : known.leaving[b] # None }
Electable(known)   == { b \in Brokers : known.live[b] # None } \ Leaving(known)
Able(known)        == known.partition.isr \cap Electable(known)

\* re_elect: a leader that registered after the state was written may be another process
\* than the one that was elected, so it must lead in a new epoch.
Restarted(known) ==
    /\ Keeps("re_elect")
    /\ known.partition.leader # None
    /\ known.live[known.partition.leader] > known.partition.stamp

\* The leader is there, and does not stop while another member of the ISR stays.
LeaderStays(known) ==
    LET leader == known.partition.leader
    IN  /\ leader # None
        /\ known.live[leader] # None
        /\ leader \in known.partition.isr
        /\ ~Restarted(known)
        /\ leader \in Leaving(known) => Able(known) = {}

\* last_in_sync_stays (KAFKA-340): a leader that is stopping hands over within the ISR, or stays.
\* Nobody is elected in a deletion.
HasToWrite(known) ==
    /\ known.deletion # "under way"
    /\ IF known.partition.leader = None THEN Able(known) # {}
       ELSE IF LeaderStays(known) /\ Able(known) = {}
       THEN ~Keeps("last_in_sync_stays") /\ Electable(known) \cap known.assignment # {}
       ELSE Restarted(known) \/ Able(known) # known.partition.isr

\* C10: one batch at the end of an event, unless a write comes first.  It goes to every live
\* replica; once the ISR is within the target, it names the target alone (KAFKA-1097).
LeaderAndIsr(b, known, replicas) ==
    [controllerEpoch |-> holds[b], leaderEpoch |-> known.partition.leaderEpoch,
     leader |-> known.partition.leader, version |-> known.partition.version,
     replicas |-> replicas, leaving |-> Leaving(known),
     live |-> [c \in Brokers |-> IF c \in known.assignment THEN known.live[c] ELSE None]]

\* One that deletes.
StopReplica(b, known, epoch, replicas) ==
    [controllerEpoch |-> holds[b], leaderEpoch |-> epoch, leader |-> None, version |-> None,
     replicas |-> {}, leaving |-> {},
     live |-> [c \in Brokers |-> IF c \in replicas THEN known.live[c] ELSE None]]

\* In a deletion: later than every leader epoch, so that no earlier request brings the replica
\* back (EpochDuringDelete).
ForGood == WriteCount + 1

Send(batch) == sent' = IF \A c \in Brokers : batch.live[c] = None THEN sent ELSE sent \cup {batch}

Within(known) ==
    /\ known.target # {}
    /\ known.target \subseteq known.assignment
    /\ known.partition.isr \subseteq known.target

Know(b, known) ==
    /\ knows' = [knows EXCEPT ![b] = known]
    /\ IF HasToWrite(known) \/ known.deletion = "under way" \/ known.partition = NoPartition
       THEN UNCHANGED sent
       ELSE Send(LeaderAndIsr(b, known, IF Within(known) THEN known.target ELSE known.assignment))

\* C6: the reign begins with reading.
\* resume_deletions (KAFKA-1681): it takes up what its predecessor was asked to delete.
Load(b) ==
    /\ InOffice(b)
    /\ ~Loaded(b)
    /\ Know(b, [Nothing EXCEPT
                    !.partition = partition, !.live = registration, !.assignment = assignment,
                    !.target = IF kept[b] # {} THEN kept[b] ELSE target, !.step = 0,
                    !.deletion = IF ~deleting THEN "none"
                                 ELSE IF Keeps("resume_deletions") THEN "under way" ELSE "overlooked"])
    /\ kept' = [kept EXCEPT ![b] = {}]
    /\ UNCHANGED << processVars, holds, replicaVars, memberVars, adminVars, partition, restVars >>

\* A reassignment has work to do on a partition that has a leader and needs no election.
Grown(known) == known.target \subseteq known.assignment

UnderWay(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].target # {}
    /\ Grown(knows[b])
    /\ knows[b].assignment # knows[b].target
    /\ ~HasToWrite(knows[b])
    /\ knows[b].partition.leader # None

\* C9: a broker came, went or bounced.  One that was told to delete its replica has to be told
\* again; one that was stopping has stopped.  This is an event of its own: between the larger
\* assignment and the leader epoch that belongs to it, no batch of the old epoch is sent.
SeeBrokers(b) ==
    /\ InOffice(b)
    /\ Loaded(b)
    /\ ~(UnderWay(b) /\ knows[b].step = 0)
    /\ knows[b].live # registration
    /\ LET known   == knows[b]
           changed == { c \in Brokers : known.live[c] # registration[c] }
       IN  Know(b, [known EXCEPT
                !.live = registration,
                !.phases = [c \in Brokers |-> IF c \in changed /\ known.phases[c] = "DeletionStarted"
                                              THEN "DeletionIneligible" ELSE known.phases[c]],
                !.leaving = [c \in Brokers |-> IF c \in changed THEN None ELSE known.leaving[c]],
                !.out = known.out \ changed])
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, restVars >>

\* The leader changed the ISR, or a write met a bad version: read the state again.
SeeState(b) ==
    /\ InOffice(b)
    /\ Loaded(b)
    /\ knows[b].partition # partition
    /\ knows' = [knows EXCEPT ![b].partition = partition]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, sent,
                    restVars >>

\* C3, C8: one multi checks /controller_epoch and sets the state at the version that the
\* controller knows; then it tells the brokers.
\* fenced_zookeeper_write (KAFKA-6082) is that check.
MayWrite(b) == Keeps("fenced_zookeeper_write") => holds[b] = controllerEpoch

WriteAt(b, leader, isr, step, out) ==
    LET written == [leader |-> leader, leaderEpoch |-> partition.leaderEpoch + 1, isr |-> isr,
                    controllerEpoch |-> holds[b], version |-> partition.version + 1,
                    stamp |-> registered]
    IN  /\ knows[b].partition.version = partition.version
        /\ MayWrite(b)
        /\ partition.version < WriteCount
        /\ partition' = written
        /\ Know(b, [knows[b] EXCEPT !.partition = written, !.step = step, !.out = out])
        /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, restVars >>

Write(b, leader, isr) ==
    LET known == knows[b]
    IN  WriteAt(b, leader, isr, known.step,
                known.out \cup ((Leaving(known) \cap known.partition.isr) \ isr))

Due(b) == InOffice(b) /\ Loaded(b) /\ HasToWrite(knows[b])

\* The leader stays, a follower has gone.
ShrinkDead(b) ==
    /\ Due(b)
    /\ LeaderStays(knows[b])
    /\ Able(knows[b]) # {}
    /\ Write(b, knows[b].partition.leader, Able(knows[b]))

\* A clean election: somebody who is in sync and stays.  Kafka takes the first in the order
\* of the assignment; here it may be any.
ElectLeader(b, leader) ==
    /\ Due(b)
    /\ ~LeaderStays(knows[b])
    /\ leader \in Able(knows[b])
    /\ Write(b, leader, Able(knows[b]))

\* Without last_in_sync_stays (KAFKA-340): the only member of the ISR is stopping, and another
\* replica is elected.
ElectOutside(b, leader) ==
    /\ Due(b)
    /\ LeaderStays(knows[b])
    /\ Able(knows[b]) = {}
    /\ leader \in Electable(knows[b]) \cap knows[b].assignment
    /\ Write(b, leader, {leader})

\* keep_last_isr_member (KAFKA-708): nobody in sync lives.  Nobody leads, and the last
\* member stays in the ISR, so that no other replica is ever taken for in sync.
NoLeader(b) ==
    /\ Due(b)
    /\ ~LeaderStays(knows[b])
    /\ Able(knows[b]) = {}
    /\ IF Keeps("keep_last_isr_member")
       THEN \E last \in knows[b].partition.isr : Write(b, None, {last})
       ELSE Write(b, None, {})

----------------------------------------------------------------------------
(* Reassignment (rule C12), step by step; a fail-over may come at any.     *)

\* 1: an admin names the target: any other set of as many brokers.
Ask(new) ==
    /\ target = {} /\ ~deleting
    /\ asked < ReassignmentCount
    /\ Cardinality(new) = Cardinality(assignment)
    /\ new # assignment
    /\ target' = new
    /\ asked' = asked + 1
    /\ UNCHANGED << processVars, controllerVars, replicaVars, memberVars, assignment, deleting,
                    completed, partition, sent, restVars >>

\* The watch fires.  What is under way already is known.
SeeTarget(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].target = {} /\ target # {}
    /\ knows' = [knows EXCEPT ![b].target = target]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, sent,
                    restVars >>

\* A fenced write of the assignment or of the entry.
Assigning(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].target # {}
    /\ MayWrite(b)
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, asked, deleting, partition,
                    sent, restVars >>

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

InSync(known) == known.target \subseteq known.partition.isr

\* 3: the leader epoch grows, so that leader and new replicas learn of the assignment.
RaiseEpoch(b) ==
    /\ UnderWay(b)
    /\ knows[b].step = 0
    /\ ~InSync(knows[b])
    /\ WriteAt(b, knows[b].partition.leader, knows[b].partition.isr, 1, knows[b].out)

\* 5: the whole target is in sync: a leader within it, the ISR without the old replicas.  Also if
\* the state is so already: only the new leader epoch makes sure that the leader was told the
\* target alone, and takes no old replica in again.
Move(b, leader) ==
    /\ UnderWay(b)
    /\ knows[b].step < 2
    /\ InSync(knows[b])
    /\ leader \in knows[b].target
    /\ knows[b].partition.leader \in knows[b].target => leader = knows[b].partition.leader
    /\ WriteAt(b, leader, knows[b].target, 2, knows[b].out)

\* 6: the old replicas are told to stop and delete.
StopOld(b) ==
    /\ UnderWay(b)
    /\ knows[b].step = 2
    /\ Send(StopReplica(b, knows[b], knows[b].partition.leaderEpoch,
                        knows[b].assignment \ knows[b].target))
    /\ knows' = [knows EXCEPT ![b].step = 3]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, restVars >>

\* 7: the assignment becomes the target.
Retire(b) ==
    /\ Assigning(b)
    /\ Grown(knows[b])
    /\ knows[b].assignment # knows[b].target
    /\ knows[b].step = 3
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
(* Deletion of the topic (rule C14); a fail-over may come at any step.     *)

\* 1: an admin wants it.
AskDeletion ==
    /\ DeletionCount > 0
    /\ assignment # {} /\ target = {} /\ ~deleting
    /\ deleting' = TRUE
    /\ UNCHANGED << processVars, controllerVars, replicaVars, memberVars, assignment, target, asked,
                    completed, partition, sent, restVars >>

\* 2: the watch fires; not for what was there when the reign began.
SeeDeletion(b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ knows[b].deletion = "none" /\ deleting
    /\ knows' = [knows EXCEPT ![b].deletion = "under way"]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, sent,
                    restVars >>

Deletes(b) == InOffice(b) /\ Loaded(b) /\ knows[b].deletion = "under way"

\* Who has to be told: nobody has told him, or he was gone and has come back.
\* offline_without_state (KAFKA-6650): also when the partition's state is gone already.
ToDelete(known) ==
    IF known.partition = NoPartition /\ ~Keeps("offline_without_state") THEN {}
    ELSE { c \in known.assignment :
              \/ known.phases[c] = "Offline"
              \/ known.phases[c] = "DeletionIneligible" /\ known.live[c] # None }

\* 3: StopReplica to those who live.  The others' turn comes when they return.
DeleteReplicas(b) ==
    /\ Deletes(b)
    /\ ToDelete(knows[b]) # {}
    /\ LET known == knows[b]
       IN  /\ Send(StopReplica(b, known, ForGood, ToDelete(known)))
           /\ knows' = [knows EXCEPT ![b].phases =
                 [c \in Brokers |->
                    IF c \notin ToDelete(known) THEN known.phases[c]
                    ELSE IF known.live[c] # None THEN "DeletionStarted" ELSE "DeletionIneligible"]]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, restVars >>

\* 4: a broker that has obeyed answers.
Deleted(b, c) ==
    /\ Deletes(b)
    /\ knows[b].phases[c] = "DeletionStarted"
    /\ running[c]
    /\ obeyed[c] = holds[b] /\ told[c].leaderEpoch = ForGood /\ ~stored[c]
    /\ knows' = [knows EXCEPT ![b].phases[c] = "DeletionSuccessful"]
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, sent,
                    restVars >>

\* 5: when all have, the nodes go; /admin/delete_topics/T last, so that a successor goes on.
AllDeleted(known) == \A c \in known.assignment : known.phases[c] = "DeletionSuccessful"

Removing(b) ==
    /\ Deletes(b)
    /\ AllDeleted(knows[b])
    /\ MayWrite(b)
    /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, target, asked, sent, restVars >>

RemoveState(b) ==
    /\ Removing(b)
    /\ knows[b].partition # NoPartition
    /\ partition' = NoPartition
    /\ knows' = [knows EXCEPT ![b].partition = NoPartition]
    /\ UNCHANGED << assignment, deleting, completed >>

RemoveTopic(b) ==
    /\ Removing(b)
    /\ knows[b].partition = NoPartition /\ knows[b].assignment # {}
    /\ assignment' = {}
    /\ completed' = {}
    /\ knows' = [knows EXCEPT ![b].assignment = {}]
    /\ UNCHANGED << deleting, partition >>

RemoveDeletion(b) ==
    /\ Removing(b)
    /\ knows[b].partition = NoPartition /\ knows[b].assignment = {}
    /\ deleting' = FALSE
    /\ knows' = [knows EXCEPT ![b].deletion = "none"]
    /\ UNCHANGED << assignment, completed, partition >>

----------------------------------------------------------------------------
(* Controlled shutdown (rule C11).                                         *)

\* 1: a broker asks, with its broker epoch.
AskShutdown(b) ==
    /\ running[b]
    /\ [broker |-> b, incarnation |-> incarnation[b]] \notin stopping
    /\ Cardinality(stopping) < ShutdownCount
    /\ stopping' = stopping \cup { [broker |-> b, incarnation |-> incarnation[b]] }
    /\ UNCHANGED << processVars, controllerVars, replicaVars, memberVars, adminVars, partition, sent,
                    crashes >>

\* 2: the controller takes note, whenever the request arrives.
\* shutdown_fencing (KAFKA-7235): it is of the incarnation that lives; without, an old request
\* takes the leadership off a broker that stays.
BeginShutdown(b, request) ==
    LET c == request.broker
    IN  /\ InOffice(b) /\ Loaded(b)
        /\ knows[b].live[c] # None
        /\ knows[b].leaving[c] # knows[b].live[c]
        /\ Keeps("shutdown_fencing") => request.incarnation = knows[b].live[c]
        /\ Know(b, [knows[b] EXCEPT !.leaving[c] = knows[b].live[c]])
        /\ UNCHANGED << processVars, holds, kept, replicaVars, memberVars, adminVars, partition, restVars >>

\* 3 is ElectLeader and ShrinkDead.
\* 4: nothing is left to move, so controller b, perhaps c itself, lets c go.  Its session ends
\* with it.  It is refused while c leads as the only member of the ISR that stays.
Stop(c, b) ==
    /\ InOffice(b) /\ Loaded(b)
    /\ HasSession(c)
    /\ knows[b].leaving[c] = incarnation[c]
    /\ knows[b].partition.leader # c
    /\ ~HasToWrite(knows[b])
    /\ EndSession(c)
    /\ EndProcess(c)
    /\ UNCHANGED restVars

----------------------------------------------------------------------------
(* What a broker does (rule C2, R8).                                       *)

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
          replicas |-> batch.replicas, leaving |-> batch.leaving]
    ELSE [Untold EXCEPT !.leaderEpoch = Max(batch.leaderEpoch, told[b].leaderEpoch)]

\* Of one that does not apply: who is stopping is learned in the same leader epoch, too, unless
\* the request is older than the version that the broker knows.
Learned(b, batch) ==
    IF /\ batch.replicas # {}
       /\ batch.leaderEpoch = told[b].leaderEpoch
       /\ told[b].version # None /\ batch.version >= told[b].version
    THEN [told[b] EXCEPT !.leaving = batch.leaving]
    ELSE told[b]

\* C2: a request arrives.
\* broker_epoch_fencing (KIP-380): it is meant for this incarnation, not for an earlier one.
\* controller_epoch_fencing (KAFKA-532): no higher controller epoch was obeyed before.
Deliver(b, batch) ==
    LET now == IF Applies(b, batch) THEN After(b, batch) ELSE Learned(b, batch)
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
        /\ UNCHANGED << processVars, controllerVars, memberVars, adminVars, partition, sent, restVars >>

\* Without resend_until_answered (KAFKA-2729): a LeaderAndIsr does not arrive, and nobody sends
\* it again.  With it that is no step: the request will arrive.
LoseRequest(b, batch) ==
    /\ ~Keeps("resend_until_answered")
    /\ unheard < UnheardCount
    /\ batch.replicas # {}
    /\ batch.live[b] # None
    /\ LET left == [batch EXCEPT !.live[b] = None]
       IN  sent' = (sent \ {batch}) \cup
                   (IF \A c \in Brokers : left.live[c] = None THEN {} ELSE {left})
    /\ unheard' = unheard + 1
    /\ UNCHANGED << processVars, controllerVars, replicaVars, adminVars, partition, restVars,
                    controller, controllerEpoch, registration, registered >>

\* R8: a leader changes the ISR by compare-and-set at the version that it knows, which a
\* deposed one does not.
WriteIsr(b, isr) ==
    /\ running[b]
    /\ Leads(b)
    /\ told[b].version = partition.version
    /\ partition.version < WriteCount
    /\ partition' = [partition EXCEPT !.isr = isr, !.version = @ + 1, !.stamp = registered]
    /\ UNCHANGED << processVars, controllerVars, obeyed, stored, led, adminVars, sent, restVars >>

ChangeIsr(b, isr) ==
    /\ WriteIsr(b, isr)
    /\ told' = [told EXCEPT ![b].version = partition.version + 1]
    /\ UNCHANGED memberVars

\* A follower lags.
ShrinkIsr(b, f) ==
    /\ f # b /\ f \in partition.isr
    /\ ChangeIsr(b, partition.isr \ {f})

\* The same, and the reply is lost: the leader goes on with the version that it knew.
ShrinkIsrUnheard(b, f) ==
    /\ f # b /\ f \in partition.isr
    /\ unheard < UnheardCount
    /\ WriteIsr(b, partition.isr \ {f})
    /\ unheard' = unheard + 1
    /\ UNCHANGED << told, controller, controllerEpoch, registration, registered >>

\* accept_own_isr_write (KAFKA-1382): its next write meets a bad version, and it reads what it
\* wrote itself: in its own leader epoch nobody else changes the ISR.
AcceptOwnIsrWrite(b) ==
    /\ UnheardCount > 0 /\ Keeps("accept_own_isr_write")
    /\ running[b]
    /\ Leads(b)
    /\ partition.leaderEpoch = told[b].leaderEpoch
    /\ partition.version > told[b].version
    /\ told' = [told EXCEPT ![b].version = partition.version]
    /\ UNCHANGED << processVars, controllerVars, obeyed, stored, led, memberVars, adminVars, partition,
                    sent, restVars >>

\* A follower that fetches in the leader's epoch has caught up.
\* assigned_replicas_only (KAFKA-1097): it is one of those that the leader was told.
\* staying_isr_members_only (KAFKA-14140): not one that the leader was told to be stopping.
ExpandIsr(b, f) ==
    /\ f # b /\ f \notin partition.isr
    /\ Keeps("assigned_replicas_only") => f \in told[b].replicas
    /\ Keeps("staying_isr_members_only") => f \notin told[b].leaving
    /\ running[f]
    /\ told[f].leader = b /\ told[f].leaderEpoch = told[b].leaderEpoch
    /\ ChangeIsr(b, partition.isr \cup {f})

----------------------------------------------------------------------------

Next ==
    \/ \E new \in SUBSET Brokers : Ask(new)
    \/ AskDeletion
    \/ \E b \in Brokers :
        \/ Expire(b)
        \/ Notice(b)
        \/ Crash(b)
        \/ Restart(b)
        \/ Elect(b)
        \/ ElectUnheard(b)
        \/ NamesMe(b)
        \/ Moved(b)
        \/ AdoptEpoch(b)
        \/ Load(b)
        \/ SeeBrokers(b)
        \/ SeeState(b)
        \/ ShrinkDead(b)
        \/ \E leader \in Brokers : ElectLeader(b, leader) \/ ElectOutside(b, leader)
        \/ NoLeader(b)
        \/ SeeTarget(b)
        \/ Grow(b)
        \/ Refuse(b)
        \/ RaiseEpoch(b)
        \/ \E leader \in Brokers : Move(b, leader)
        \/ StopOld(b)
        \/ Retire(b)
        \/ RemoveEntry(b)
        \/ SeeDeletion(b)
        \/ DeleteReplicas(b)
        \/ \E c \in Brokers : Deleted(b, c)
        \/ RemoveState(b)
        \/ RemoveTopic(b)
        \/ RemoveDeletion(b)
        \/ AskShutdown(b)
        \/ \E request \in stopping : BeginShutdown(b, request)
        \/ \E c \in Brokers : Stop(c, b)
        \/ \E batch \in sent : Deliver(b, batch) \/ LoseRequest(b, batch)
        \/ \E f \in Brokers : ShrinkIsr(b, f)
        \/ \E f \in Brokers : ShrinkIsrUnheard(b, f)
        \/ AcceptOwnIsrWrite(b)
        \/ \E f \in Brokers : ExpandIsr(b, f)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What must hold, named as in the table of invariants (CTRL-FENCE,        *)
(* EPOCH-MONO, ISR-IN-AR, ISR-NONEMPTY, ASSIGN, COMMIT-SAFE, DEL-COMPLETE; *)
(* STOP-SAFE and INCARNATION are about controlled shutdown).               *)

BrokersOrNone   == Brokers \cup {None}
Epochs          == 0 .. LastEpoch
Incarnations    == 0 .. SessionCount
Versions        == 0 .. WriteCount
Registrations   == [Brokers -> Incarnations \cup {None}]
PartitionStates ==
    {NoPartition} \cup
    [leader : BrokersOrNone, leaderEpoch : Versions, isr : SUBSET Brokers,
     controllerEpoch : Epochs, version : Versions, stamp : Incarnations]
LeaderEpochs    == Versions \cup {None, ForGood}
Phases          == {"Offline", "DeletionStarted", "DeletionSuccessful", "DeletionIneligible"}

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
                          /\ knows[b].step \in 0 .. 3
                          /\ knows[b].deletion \in {"none", "under way", "overlooked"}
                          /\ knows[b].phases \in [Brokers -> Phases]
                          /\ knows[b].leaving \in Registrations
                          /\ knows[b].out \subseteq Brokers
          /\ kept[b] \subseteq Brokers
          /\ obeyed[b] \in Epochs \cup {None}
          /\ told[b] \in [leaderEpoch : LeaderEpochs, leader : BrokersOrNone,
                          version : Versions \cup {None}, replicas : SUBSET Brokers,
                          leaving : SUBSET Brokers]
          /\ stored[b] \in BOOLEAN
    /\ controller \in BrokersOrNone
    /\ controllerEpoch \in Epochs
    /\ registration \in Registrations
    /\ registered \in Incarnations
    /\ unheard \in 0 .. UnheardCount
    /\ partition \in PartitionStates
    /\ \A batch \in sent :
          batch \in [controllerEpoch : Epochs, leaderEpoch : LeaderEpochs, leader : BrokersOrNone,
                     version : Versions \cup {None}, replicas : SUBSET Brokers,
                     leaving : SUBSET Brokers, live : Registrations]
    /\ \A one \in led :
          one \in [leaderEpoch : Versions, broker : Brokers, process : Incarnations]
    /\ crashes \in 0 .. CrashCount
    /\ assignment \subseteq Brokers /\ target \subseteq Brokers /\ completed \subseteq Brokers
    /\ asked \in 0 .. ReassignmentCount
    /\ deleting \in BOOLEAN
    /\ \A request \in stopping : request \in [broker : Brokers, incarnation : Incarnations]

\* CTRL-FENCE: no two brokers hold one controller epoch.
CtrlFence ==
    \A b, c \in Brokers : (InOffice(b) /\ holds[b] = holds[c]) => b = c

\* CTRL-FENCE of a step: an election is written by the controller in office, and no running
\* broker obeys a lower controller epoch after a higher one.
Elects == partition'.leaderEpoch # partition.leaderEpoch /\ partition' # NoPartition

CtrlFenceStep ==
    /\ Elects => partition'.controllerEpoch = controllerEpoch
    /\ \A b \in Brokers : (running[b] /\ running'[b]) => obeyed[b] <= obeyed'[b]
CtrlFenceSteps == [][CtrlFenceStep]_vars

\* EPOCH-MONO: one process ever leads in a leader epoch.
EpochMono == \A one, other \in led : one.leaderEpoch = other.leaderEpoch => one = other

\* EPOCH-MONO of a step: leader epochs never go back, neither in ZooKeeper nor at a running broker.
EpochMonoStep ==
    /\ Elects => partition.leaderEpoch <= partition'.leaderEpoch
    /\ \A b \in Brokers : (running[b] /\ running'[b]) => told[b].leaderEpoch <= told'[b].leaderEpoch
EpochMonoSteps == [][EpochMonoStep]_vars

\* ISR-IN-AR: the leader is in the ISR, or nobody leads; the ISR is part of the assignment.
IsrInAr ==
    /\ partition.leader \in partition.isr \cup {None}
    /\ partition.isr \subseteq assignment

\* ISR-NONEMPTY: somebody is known to hold everything.
IsrNonempty == partition.isr # {} \/ partition = NoPartition

\* ASSIGN: with no reassignment pending, the assignment is what the last completed one asked for.
Assign == target = {} => assignment = completed

\* COMMIT-SAFE: no member of the ISR has deleted its log, unless the topic is to be deleted.
CommitSafe == deleting \/ \A b \in partition.isr : stored[b]

\* COMMIT-SAFE of a step: whoever is elected was in sync.
CommitSafeStep == Elects => partition'.leader \in partition.isr \cup {None}
CommitSafeSteps == [][CommitSafeStep]_vars

\* DEL-COMPLETE: when the topic's node is gone, no broker has a log of it, nor gets one again.
\* And before: a controller in office that knows what there is has a step to take, or waits for
\* a broker.
GoesOn(b) ==
    \/ knows[b].deletion = "none"          \* SeeDeletion
    \/ /\ knows[b].deletion = "under way"
       /\ \/ AllDeleted(knows[b])
          \/ ToDelete(knows[b]) # {}
          \/ \E c \in knows[b].assignment :
                \/ knows[b].phases[c] = "DeletionStarted"
                \/ knows[b].phases[c] = "DeletionIneligible" /\ knows[b].live[c] = None

UpToDate(b) == controller = b /\ holds[b] = controllerEpoch /\ Loaded(b) /\ knows[b].live = registration

DelComplete ==
    DeletionCount > 0 =>
        /\ assignment = {} => \A b \in Brokers : ~stored[b]
        /\ deleting => \A b \in Brokers : UpToDate(b) => GoesOn(b)

\* STOP-SAFE: whom the controller in office took out of the ISR because it stops, nobody takes
\* in again before it has come back.
StopSafe ==
    \A b \in Brokers : (controller = b /\ holds[b] = controllerEpoch /\ Loaded(b)) =>
        \A c \in knows[b].out : knows[b].leaving[c] = registration[c] => c \notin partition.isr

\* INCARNATION: a controller holds nobody for stopping who has not asked in this incarnation: he would
\* neither lead nor be in sync any more.
Incarnation ==
    \A b, c \in Brokers : knows[b].leaving[c] # None =>
        [broker |-> c, incarnation |-> knows[b].leaving[c]] \in stopping

=============================================================================
