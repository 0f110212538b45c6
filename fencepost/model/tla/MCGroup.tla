------------------------------ MODULE MCGroup ------------------------------
(***************************************************************************)
(* For TLC: Group, and what a useful set of constants reaches.  Give one   *)
(* of the four as INVARIANT to see a behaviour that reaches it.            *)
(***************************************************************************)
EXTENDS Group

NothingIsEverAcknowledged == \A p \in Partitions : acked[p].number = None

NoCommitOutlivesItsGeneration ==
    \A b \in Brokers, m \in Members :
        (owns[b] /\ group[b].state = "Stable") =>
            \A i \in DOMAIN sent[m] : sent[m][i].generation >= group[b].generation

NeverTwoBrokersOwnTheGroup == Cardinality({ b \in Brokers : owns[b] }) <= 1

NoCommitOutlivesItsCoordinator ==
    \A b \in Brokers :
        (owns[b] /\ loaded[b] > 0) => \A p \in Partitions : group[b].offsets[p] = None

=============================================================================
