"""A log's state of its idempotent and transactional producers: state, snapshots, files."""
