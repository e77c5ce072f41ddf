"""Planning: how many plugs to add, and where."""
