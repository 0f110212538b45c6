"""`watch`: a folder judged while parts of traces arrive in it."""
