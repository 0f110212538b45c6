-------------------------------- MODULE Lamp --------------------------------
(* A lamp that is promised to be on again and again.                        *)
EXTENDS Integers
CONSTANT Fair
VARIABLES lamp, turns
vars == <<lamp, turns>>

Init == lamp = "off" /\ turns = 0
Switch == turns = 0 /\ lamp' = (IF lamp = "off" THEN "on" ELSE "off") /\ UNCHANGED turns
Break == Fair /\ lamp = "off" /\ turns' = 1 - turns /\ UNCHANGED lamp
Next == Switch \/ Break
Spec == Init /\ [][Next]_vars /\ WF_vars(Fair /\ Next)

OnAgain == []<>(lamp = "on")
=============================================================================
