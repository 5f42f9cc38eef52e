"""Graphs that are drawn wrong: what the soft graph saves, and what it costs where it is right."""

from _panels import main

PANELS = ["missing-arrow", "missing-cause", "missing-arrow-7", "right-graph"]
SAYS = (
    "With an arrow missing, policies that believe their graph lose without end. The soft graph "
    "(`soft=0.1`: every edge that might be missing is doubtful) loses at most half of that, and "
    "less than a policy without a graph. Where a hidden cause is missing, or nothing is, it costs "
    "at most a quarter more. `right` knows the true graph, `drawn` lacks the edge; bernoulli-ts "
    "plays all arms."
)

if __name__ == "__main__":
    main("wrong_graphs", "Wrong graphs", SAYS, PANELS)
