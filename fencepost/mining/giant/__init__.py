"""One giant history: folded by row groups, merged by slot ranges, with a closer look if needed."""
