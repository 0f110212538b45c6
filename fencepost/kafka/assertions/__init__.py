"""What a test asserts of the service that it broke.

asserting       the methods of the handle
log_assertions  nothing lost, in order, delivered, no duplicate, processed once
rules           what a test's own functions say of records
problems        what they find: findings, and the operations that are cited

Nothing is imported here: who holds a handle needs no judge yet.
"""
