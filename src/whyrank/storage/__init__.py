"""Where memories live; the only rooms that know SQL."""
