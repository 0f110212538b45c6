--------------------------- MODULE MCController ---------------------------
(***************************************************************************)
(* For TLC: Controller, and what a useful set of constants reaches.  Give  *)
(* one of the four as INVARIANT to see a behaviour that reaches it.        *)
(***************************************************************************)
EXTENDS Controller

NoZombieControls == \A b \in Brokers : InOffice(b) => registration[b] = incarnation[b]

NeverTwoControllersAtOnce == Cardinality({ b \in Brokers : InOffice(b) }) <= 1

NeverTwoLeadersAtOnce == Cardinality({ b \in Brokers : Leads(b) }) <= 1

SomebodyAlwaysLeads == partition.leader # None

=============================================================================
