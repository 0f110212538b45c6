"""The judge of what an application did with records: sent, acknowledged, received, processed, committed.

Owns the rules and their words. Must not know how events are written or read (fencepost/application).
"""
