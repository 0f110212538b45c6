"""One giant history: folded by row groups, merged by slot ranges, looked at closer where needed."""
