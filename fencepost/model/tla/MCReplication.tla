--------------------------- MODULE MCReplication ---------------------------
(***************************************************************************)
(* For TLC: Replication, and what a useful set of constants reaches.  Give *)
(* one of the four as INVARIANT to see a behaviour that reaches it.        *)
(***************************************************************************)
EXTENDS Replication

NothingIsEverCommitted == committed = << >>

NeverTwoLeadersAtOnce == Cardinality({ r \in Replicas : Leads(r) }) <= 1

LogsNeverFork ==
    \A r, s \in Replicas :
        LET both == Min(LogEnd(r), LogEnd(s))
        IN  leader[r] # Down => Prefix(log[r], both) = Prefix(log[s], both)

IsrNeverShrinksToItsLeader == Current.isr # {Current.leader}

=============================================================================
