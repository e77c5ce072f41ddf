"""Notes on the counts of all sessions."""

from __future__ import annotations

__all__ = ["count_notes"]

FEW_SESSIONS = 100


def count_notes(counts: dict[str, int], sessions: int) -> list[str]:
    """Sentences about counts that the user should know."""
    notes = []
    if counts["ids_used_twice"]:
        some = "1 session has" if counts["ids_used_twice"] == 1 else f"{counts['ids_used_twice']:,} sessions have"
        notes.append(f"{some} the id of another at another station or start.")
    if 0 < sessions < FEW_SESSIONS:
        some = "is only 1 session" if sessions == 1 else f"are only {sessions} sessions"
        notes.append(f"There {some}, too few for meaningful estimates.")
    return notes
