------------------------------ MODULE Mistaken ------------------------------
EXTENDS Integers, Sequences, TLC
CONSTANT How
VARIABLE x
Init == x = 0
Next ==
    /\ x' = x + 1
    /\ CASE How = "head" -> Head(<< >>) = 1
         [] How = "assert" -> Assert(x < 2, <<"x is", x>>)
         [] How = "assume" -> TRUE
         [] How = "endless" -> TRUE
ASSUME How # "assume"
Spec == Init /\ [][Next]_x
=============================================================================
