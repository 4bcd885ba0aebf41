"""The keyword index of our own: posting lists in ordinary rows, exact scores in numpy, statistics per scope."""
