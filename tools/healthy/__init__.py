"""`make healthy`: a hundred thousand seeds of the unbroken implementation, in which nothing may be found."""
