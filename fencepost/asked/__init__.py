"""What no ordinary client sees of a cluster, asked by its own protocol: who leads and what each replica has,
groups and transactions as their coordinators know them and as they are stored.

A round (round.py) asks one broker after the other. It is sans-IO and knows the core's messages only, so that
the simulated network (simulated.py) and Kafka's wire (kafka.py) carry the same questions.
"""
