"""Records: an operator's files in, sessions and stations out."""
