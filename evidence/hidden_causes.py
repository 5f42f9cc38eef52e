"""Hidden common causes: what the exact posterior of factors is worth against the baselines."""

from _panels import main

from dowise.simulation.paper_panels import BEYOND

PANELS = [name for name, panel in BEYOND.items() if panel.horizon == 500]
CLAIM = (
    "where a graph has bidirected edges, `ids` loses less than `ts`, than policies that learn each "
    "arm by itself and than those of z²ID, with mild hidden causes (two values, rows from "
    "Dirichlet(1)) and with strong ones (three values, rows from Dirichlet(.2))."
)

if __name__ == "__main__":
    main("hidden_causes", "Hidden common causes", CLAIM, PANELS)
