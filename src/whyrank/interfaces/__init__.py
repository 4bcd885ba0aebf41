"""The doors: the command line now, others beside it; one JSON shape and one error table for all."""
