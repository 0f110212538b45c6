"""Machine code for busy brokers, loaded next to their work. Needs no ZooKeeper."""

import threading

from fencepost.impl.log.batch.record_walk import COMPILED_WALK


def load_when_due() -> None:
    """Load the machine code that checks records once it is worth it, in a thread of its own: a broker's
    session must live on meanwhile."""
    if COMPILED_WALK.due():
        threading.Thread(target=COMPILED_WALK.load, name="fencepost loads machine code", daemon=True).start()
