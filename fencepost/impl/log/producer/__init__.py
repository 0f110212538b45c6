"""What a log keeps of its idempotent and transactional producers: state, snapshots, files."""
