------------------------------- MODULE Locks --------------------------------
(* Two threads take two locks, each in the order that it likes.             *)
EXTENDS Sequences, FiniteSets
CONSTANTS Threads, SameOrder
VARIABLES holds, left

Order(t) == IF SameOrder \/ t = CHOOSE one \in Threads : TRUE
            THEN <<"disk", "net">> ELSE <<"net", "disk">>

Init == holds = [t \in Threads |-> {}] /\ left = [t \in Threads |-> Order(t)]
Take(t) ==
    /\ left[t] # << >>
    /\ \A other \in Threads : Head(left[t]) \notin holds[other]
    /\ holds' = [holds EXCEPT ![t] = @ \cup {Head(left[t])}]
    /\ left' = [left EXCEPT ![t] = Tail(@)]
Release(t) ==
    /\ left[t] = << >>
    /\ holds' = [holds EXCEPT ![t] = {}]
    /\ left' = [left EXCEPT ![t] = Order(t)]
Next == \E t \in Threads : Take(t) \/ Release(t)
Spec == Init /\ [][Next]_<<holds, left>>
=============================================================================
