"""The transactional producer, and an application that uses one."""
