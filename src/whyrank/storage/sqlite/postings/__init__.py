"""The keyword index: posting lists in ordinary rows, exact scores, statistics per scope."""
