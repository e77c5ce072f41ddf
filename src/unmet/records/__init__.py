"""Session records: from an operator's files to tables of sessions and stations."""
