"""Machine code for busy brokers, loaded next to their work. Needs no ZooKeeper."""

import threading

from fencepost.impl.log.batch.record_walk import MACHINE


def load_when_due() -> None:
    """Load the machine code that checks records once it is worth it, in a thread of its own: a broker's
    session must live on meanwhile."""
    if MACHINE.due():
        threading.Thread(target=MACHINE.load, name="fencepost loads machine code", daemon=True).start()
