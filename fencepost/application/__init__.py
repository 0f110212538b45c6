"""What an application did, in lines that it wrote itself: sent, acknowledged, received, processed, committed.

Owns the format of these lines, their reading into columns, and the judge of what the application promises.
Must not know brokers, the wire, or any client library: docs/reference/events.md is all that an emitter needs.
"""
