---------------------------- MODULE RecordedRuns ----------------------------
(***************************************************************************)
(* An example of what `fencepost model tlc conform` generates: two runs of a     *)
(* partition with two brokers.  In the first, broker 1 copies what broker  *)
(* 0 appended.  In the second it claims another value, which no action     *)
(* explains.                                                               *)
(***************************************************************************)
EXTENDS Integers, Sequences

Brokers == -1 .. 1

Beginning == <<
    [name |-> "partition_state", node |-> 0, leader |-> 0, isr |-> {0, 1}, epoch |-> 0, version |-> 0],
    [name |-> "became_leader", node |-> 0, leader |-> 0, epoch |-> 0, offset |-> 0, watermark |-> 0, isr |-> {0, 1}],
    [name |-> "became_follower", node |-> 1, leader |-> 0, epoch |-> 0, offset |-> 0, watermark |-> 0, isr |-> {}],
    [name |-> "appended", node |-> 0, leads |-> TRUE, epoch |-> 0, offset |-> 0, end |-> -1, records |-> << << 0, 7 >> >>]
>>

Copy(value) ==
    [name |-> "appended", node |-> 1, leads |-> FALSE, epoch |-> 0, offset |-> 0, end |-> -1, records |-> << << 0, value >> >>]

Traces == <<
    [unclean |-> FALSE, compacted |-> FALSE, events |-> Append(Beginning, Copy(7))],
    [unclean |-> FALSE, compacted |-> FALSE, events |-> Append(Beginning, Copy(8))]
>>

=============================================================================
