--------------------------- MODULE MCTransaction ---------------------------
(***************************************************************************)
(* For TLC: Transaction, and what a useful set of constants reaches.  Give *)
(* one of these as INVARIANT to see a behaviour that reaches it.           *)
(***************************************************************************)
EXTENDS Transaction

NothingIsCommitted == \A p \in Partitions : \A r \in Records(p) : r.fate # "committed"

NothingIsAborted == \A p \in Partitions : \A r \in Records(p) : r.fate # "aborted"

NoRequestOutlivesItsTransaction ==
    \A i \in Producers : \A r \in producer[i].requests : r.transaction = producer[i].transaction

NoProducerIsFenced ==
    \A i \in Producers : producer[i].sent # {} => producer[i].epoch = value.epoch

NoCoordinatorIsDeposed == \A e \in Epochs : held[e] # << >> => e = elected

NoMarkerOutlivesItsTransaction == \A m \in markers : m.number = value.number

=============================================================================
