-------------------------------- MODULE Jugs --------------------------------
(* Two jugs without marks, and a fountain. The invariant says that a volume *)
(* cannot be measured; its counterexample says how to measure it.           *)
EXTENDS Integers, TLC
CONSTANTS Sizes, Wanted
VARIABLE held

Jugs == DOMAIN Sizes
Least(a, b) == IF a < b THEN a ELSE b

Init == held = [j \in Jugs |-> 0]
Fill(j) == /\ PrintT(<<"fill", j>>)
           /\ held' = [held EXCEPT ![j] = Sizes[j]]
Empty(j) == held' = [held EXCEPT ![j] = 0]
Pour(j, k) ==
    LET moved == Least(held[j], Sizes[k] - held[k])
    IN  j # k /\ held' = [held EXCEPT ![j] = @ - moved, ![k] = @ + moved]
Next == \E j \in Jugs : Fill(j) \/ Empty(j) \/ \E k \in Jugs : Pour(j, k)
Spec == Init /\ [][Next]_held

NotMeasured == \A j \in Jugs : held[j] # Wanted
NeverEmptied == [][\A j \in Jugs : held[j] = Sizes[j] => held'[j] # 0]_held
SmallSizes == [small |-> 3, big |-> 5]
=============================================================================
