"""Exchange of graphs, problems and environments with pgmpy and DoWhy.

Both libraries hold networkx graphs in which some variables may be unobserved. Neither has
bidirected edges in its most common classes, so `A <-> B` is exported as an unobserved variable that
causes both, and imported as the bidirected edge it was. Models are recognised by their attributes,
not by their class, so neither library is imported to read one.

>>> from dowise import CausalGraph
>>> exported = graph_to_dowhy(CausalGraph.parse("X -> Y; X <-> Y!"))
>>> sorted(exported.edges), exported.nodes["U_X_Y"]["observed"]
([('U_X_Y', 'X'), ('U_X_Y', 'Y'), ('X', 'Y')], 'no')
>>> print(graph_from_dowhy(exported))
X -> Y; X <-> Y!
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.environments import Environment
from dowise.environments.networks import cpts_for_problem
from dowise.errors import DowiseError, MissingExtraError, join_names, type_name
from dowise.graph import CausalGraph
from dowise.graph.formats.bif import Network
from dowise.graph.formats.gml import from_networkx, to_networkx
from dowise.problem import Problem

if TYPE_CHECKING:
    import networkx

MAX_LABELS = 20
"""Most distinct values a column of a model's data may have; one with more is a measurement."""

_BIDIRECTED = "hidden_cause"  # node attribute of a variable exported for a bidirected edge


@dataclass(frozen=True)
class _CausalModel:
    """Graph of a model with all its variables, and the roles that the model assigns."""

    graph: CausalGraph
    latent: tuple[str, ...]
    exposures: tuple[str, ...]
    outcomes: tuple[str, ...]
    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    data: Any = None


def graph_from_pgmpy(model: Any) -> CausalGraph:
    """Convert a pgmpy model to a causal graph.

    Parameters
    ----------
    model : pgmpy.base.DAG, pgmpy.base.ADMG or a Bayesian network
        Its latent variables are projected out.

    Returns
    -------
    CausalGraph

    Raises
    ------
    DowiseError
        If `model` is not a pgmpy model ("invalid-type") or has undirected edges
        ("undirected-edge").

    Examples
    --------
    >>> from dowise import CausalGraph
    >>> dag = graph_to_pgmpy(CausalGraph.parse("X -> Y; X <-> Y"))  # doctest: +SKIP
    >>> graph_from_pgmpy(dag)  # doctest: +SKIP
    CausalGraph.parse('X -> Y; X <-> Y')
    """
    parsed = _read_pgmpy(model)
    return parsed.graph.project(parsed.latent)


def graph_to_pgmpy(graph: CausalGraph, hidden: str | Iterable[str] = ()) -> Any:
    """Convert a causal graph to a `pgmpy.base.DAG`.

    Parameters
    ----------
    graph : CausalGraph
        The graph. Each bidirected edge becomes a latent variable.
    hidden : str or iterable of str, optional
        Variables of the graph that become latent too.

    Returns
    -------
    pgmpy.base.DAG

    Raises
    ------
    MissingExtraError
        If pgmpy is not installed.
    DowiseError
        If `hidden` names an unknown variable ("unknown-variable").

    Examples
    --------
    >>> from dowise import CausalGraph
    >>> sorted(graph_to_pgmpy(CausalGraph.parse("X -> Y; X <-> Y")).latents)  # doctest: +SKIP
    ['U_X_Y']
    """
    exported = graph_to_dowhy(graph, hidden)
    dag = _import_pgmpy("base").DAG(latents=set())
    dag.add_nodes_from(exported)
    dag.add_edges_from(exported.edges)
    dag.latents = {name for name, data in exported.nodes.items() if data["observed"] == "no"}
    for name, attributes in exported.nodes(data=True):
        dag.nodes[name].update(attributes)
    for cause, effect, attributes in exported.edges(data=True):
        dag.edges[cause, effect].update(attributes)
    return dag


def graph_from_dowhy(model: Any) -> CausalGraph:
    """Convert a DoWhy model to a causal graph.

    Parameters
    ----------
    model : dowhy.CausalModel, dowhy.causal_graph.CausalGraph, a gcm model or networkx.DiGraph
        Nodes with the attribute observed="no" are projected out.

    Returns
    -------
    CausalGraph

    Raises
    ------
    DowiseError
        If `model` holds no networkx graph ("invalid-type").

    Examples
    --------
    >>> import networkx
    >>> graph_from_dowhy(networkx.DiGraph([("X", "Y")]))
    CausalGraph.parse('X -> Y')
    """
    parsed = _read_dowhy(model)
    return parsed.graph.project(parsed.latent)


def graph_to_dowhy(graph: CausalGraph, hidden: str | Iterable[str] = ()) -> networkx.DiGraph[str]:
    """Convert a causal graph to the `graph` of a DoWhy `CausalModel` or gcm.

    Parameters
    ----------
    graph : CausalGraph
        The graph. Each bidirected edge becomes an unobserved variable.
    hidden : str or iterable of str, optional
        Variables of the graph that become unobserved too.

    Returns
    -------
    networkx.DiGraph
        Unobserved nodes have the attribute observed="no".

    Raises
    ------
    DowiseError
        If `hidden` names an unknown variable ("unknown-variable").

    Examples
    --------
    >>> from dowise import CausalGraph
    >>> sorted(graph_to_dowhy(CausalGraph.parse("X -> Y")).edges)
    [('X', 'Y')]
    """
    import networkx

    unobserved = set(graph.names(graph.mask(hidden)))
    exported: networkx.DiGraph[str] = networkx.DiGraph()
    for name in graph.variables:
        exported.add_node(name, observed="no" if name in unobserved else "yes")
    for tail, head, key, marks in to_networkx(graph).edges(keys=True, data=True):
        if key == "directed":
            exported.add_edge(tail, head, **marks)
        else:
            cause = f"U_{tail}_{head}"
            while cause in exported:
                cause += "_"
            exported.add_node(cause, observed="no", **{_BIDIRECTED: True}, **marks)
            exported.add_edges_from([(cause, tail), (cause, head)])
    return exported


def problem_from_pgmpy(model: Any, **options: Any) -> Problem:
    """Create the problem of a pgmpy model.

    The model's only outcome is the reward, its exposures are the manipulable variables, its latents
    are hidden, and its states are the labels.

    Parameters
    ----------
    model : pgmpy.base.DAG, pgmpy.base.ADMG or a Bayesian network
    **options
        Arguments of `Problem`; they take precedence over the model.

    Returns
    -------
    Problem

    Raises
    ------
    DowiseError
        If `model` is not a pgmpy model ("invalid-type"), or neither the model nor the options
        determine the reward ("missing-value").

    Examples
    --------
    >>> problem_from_pgmpy(dag, reward="Cure", context=["Age"])  # doctest: +SKIP
    """
    return _problem(_read_pgmpy(model), options)


def problem_from_dowhy(model: Any, **options: Any) -> Problem:
    """Create the problem of a DoWhy model.

    The outcome is the reward, treatments are the manipulable variables, unobserved variables are
    hidden, and the distinct values in the model's data are the labels. Effect modifiers do not
    become context, because the model does not tell if they are seen before the choice: pass
    `context` if they are.

    Parameters
    ----------
    model : dowhy.CausalModel, dowhy.causal_graph.CausalGraph, a gcm model or networkx.DiGraph
    **options
        Arguments of `Problem`; they take precedence over the model.

    Returns
    -------
    Problem

    Raises
    ------
    DowiseError
        If `model` holds no networkx graph ("invalid-type"), neither the model nor the options
        determine the reward ("missing-value"), or a column has more than `MAX_LABELS` distinct
        values ("too-large").

    Examples
    --------
    >>> import networkx
    >>> problem_from_dowhy(networkx.DiGraph([("X", "Y")]), reward="Y").arms
    (Intervention({'X': '0'}), Intervention({'X': '1'}))
    """
    return _problem(_read_dowhy(model), options)


def environment_from_pgmpy(model: Any, **options: Any) -> Environment:
    """Create the environment of a Bayesian network of pgmpy whose CPDs are tables.

    Parameters
    ----------
    model : pgmpy.models.DiscreteBayesianNetwork
    **options
        Arguments of `Problem`, as in `problem_from_pgmpy`.

    Returns
    -------
    Environment

    Raises
    ------
    DowiseError
        As in `problem_from_pgmpy`; also if a variable has no table ("missing-value") or its table
        does not match the graph ("inconsistent-table").

    Examples
    --------
    >>> environment_from_pgmpy(network, reward="Cure").means()  # doctest: +SKIP
    """
    problem = problem_from_pgmpy(model, **options)
    network = _network_from_pgmpy(model)
    return Environment(problem, cpts_for_problem(problem, network), network.graph)


def environment_to_pgmpy(environment: Environment) -> Any:
    """Convert an environment to a `pgmpy.models.DiscreteBayesianNetwork` with the same numbers.

    Parameters
    ----------
    environment : Environment
        Its hidden variables become latents.

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork

    Raises
    ------
    MissingExtraError
        If pgmpy is not installed.

    Examples
    --------
    >>> from dowise import Environment
    >>> environment_to_pgmpy(Environment.from_bif("asia")).check_model()  # doctest: +SKIP
    True
    """
    network = environment.network
    model = _import_pgmpy("models").DiscreteBayesianNetwork(latents=set())
    tabular_cpd = _import_pgmpy("factors.discrete").TabularCPD
    model.add_nodes_from(network.graph.variables)
    model.add_edges_from(network.graph.directed_edges)
    model.latents = set(environment.hidden)
    for name, cpt in network.cpts.items():
        parents = network.graph.parents(name)
        size = len(network.domains[name])
        cpd = tabular_cpd(
            name,
            size,
            cpt.reshape(-1, size).T,
            evidence=list(parents),
            evidence_card=[len(network.domains[parent]) for parent in parents],
            state_names={axis: list(network.domains[axis]) for axis in (*parents, name)},
        )
        model.add_cpds(cpd)
    return model


def _read_pgmpy(model: Any) -> _CausalModel:
    if not _is_networkx(model) or not hasattr(model, "latents"):
        raise DowiseError(
            f"expected a DAG, an ADMG or a Bayesian network of pgmpy, not {type_name(model)}",
            code="invalid-type",
        )
    for tail, head in getattr(model, "undirected_edges", ()):
        raise DowiseError(
            f"{tail} -- {head} has no direction; pass a DAG, such as model.to_dag()",
            code="undirected-edge",
        )
    graph = _restore_bidirected(model)
    cpds = model.get_cpds() if hasattr(model, "get_cpds") else []
    return _CausalModel(
        from_networkx(graph),
        latent=_sorted_names(name for name in model.latents if name in graph),
        exposures=_sorted_names(getattr(model, "exposures", ())),
        outcomes=_sorted_names(getattr(model, "outcomes", ())),
        domains={
            str(cpd.variable): tuple(map(str, cpd.state_names[cpd.variable]))
            for cpd in cpds
            if hasattr(cpd, "state_names")
        },
    )


def _read_dowhy(model: Any) -> _CausalModel:
    # A CausalModel holds a CausalGraph in `_graph`, which holds the networkx graph in `_graph`; a
    # gcm model holds it in `graph`.
    holder = getattr(model, "_graph", None) or getattr(model, "graph", model)
    graph = model if _is_networkx(model) else getattr(holder, "_graph", holder)
    if not _is_networkx(graph):
        raise DowiseError(
            f"expected a CausalModel or a causal graph of DoWhy, not {type_name(model)}",
            code="invalid-type",
        )
    graph = _restore_bidirected(graph)
    return _CausalModel(
        from_networkx(graph),
        latent=_sorted_names(n for n, data in graph.nodes.items() if data.get("observed") == "no"),
        exposures=_sorted_names(getattr(model, "_treatment", None) or ()),
        outcomes=_sorted_names(getattr(model, "_outcome", None) or ()),
        data=getattr(model, "_data", None),
    )


def _sorted_names(names: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted(map(str, names)))


def _is_networkx(graph: object) -> bool:
    import networkx

    return isinstance(graph, networkx.Graph)


def _restore_bidirected(graph: Any) -> networkx.MultiDiGraph[Any]:
    """Replace the variables that were exported for bidirected edges by these edges."""
    import networkx

    restored: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph(graph)
    for name, attributes in graph.nodes(data=True):
        if attributes.get(_BIDIRECTED):
            tail, head = restored.successors(name)
            marks = {key: attributes[key] for key in ("doubtful", "certain") if key in attributes}
            restored.remove_node(name)
            restored.add_edge(tail, head, bidirected=True, **marks)
    return restored


def _problem(model: _CausalModel, options: dict[str, Any]) -> Problem:
    options = {"hidden": model.latent, **options}
    if "reward" not in options:
        if len(model.outcomes) != 1:
            outcomes = f" (outcomes of the model: {join_names(model.outcomes)})"
            raise DowiseError(
                f"reward is required: the model does not have exactly one outcome"
                f"{outcomes if model.outcomes else ''}",
                code="missing-value",
            )
        options["reward"] = model.outcomes[0]
    if model.exposures and not {"manipulable", "non_manipulable"} & options.keys():
        options["manipulable"] = model.exposures
    passed = dict(options.get("domains") or {})
    domains = {**model.domains, **_labels_in_data(model, exclude=passed), **passed}
    options["domains"] = {name: domains[name] for name in domains if name in model.graph}
    return Problem(model.graph, **options)


def _labels_in_data(model: _CausalModel, exclude: Iterable[str]) -> dict[str, list[Any]]:
    labels: dict[str, list[Any]] = {}
    for column in () if model.data is None else model.data.columns:
        name, values = str(column), model.data[column]
        if name not in model.graph or name in exclude:
            continue
        categories = getattr(values.dtype, "categories", None)
        distinct = list(values.dropna().unique() if categories is None else categories)
        if len(distinct) > MAX_LABELS:
            raise DowiseError(
                f"{name} has {len(distinct):,} distinct values in the model's data (at most "
                f"{MAX_LABELS}); bin it (pandas.cut) or pass domains={{{name!r}: [...]}}",
                code="too-large",
            )
        if categories is None:
            try:
                distinct.sort()
            except TypeError:  # numbers and texts are mixed
                distinct.sort(key=str)
        labels[name] = distinct
    return labels


def _network_from_pgmpy(model: Any) -> Network:
    parsed = _read_pgmpy(model)
    graph, domains = parsed.graph, parsed.domains
    for tail, head in graph.bidirected_edges:
        raise DowiseError(
            f"{tail} <-> {head}: a Bayesian network has no bidirected edges",
            code="bidirected-edge",
        )
    cpds = {str(cpd.variable): cpd for cpd in getattr(model, "get_cpds", list)()}
    cpts = {}
    for name in graph.variables:
        if not hasattr(cpds.get(name), "state_names"):
            raise DowiseError(
                f"{name} has no table of probabilities; add a TabularCPD (model.add_cpds)",
                code="missing-value",
            )
        cpts[name] = _cpt_from_cpd(cpds[name], (*graph.parents(name), name), domains)
    return Network(graph, domains, cpts)


def _cpt_from_cpd(
    cpd: Any, axes: tuple[str, ...], domains: dict[str, tuple[str, ...]]
) -> NDArray[np.float64]:
    """Return the table of a CPD with these axes, the labels of each in the order of its domain."""
    variables = [str(variable) for variable in cpd.variables]
    if sorted(variables) != sorted(axes):
        raise DowiseError(
            f"the CPD of {axes[-1]} has the parents {', '.join(variables[1:]) or 'none'}, but its "
            f"parents in the graph are {', '.join(axes[:-1]) or 'none'}",
            code="inconsistent-table",
        )
    labels = {str(variable): [*map(str, states)] for variable, states in cpd.state_names.items()}
    for name in axes:
        if sorted(labels[name]) != sorted(domains[name]):
            raise DowiseError(
                f"the CPD of {axes[-1]} has the states {', '.join(labels[name])} for {name}, whose "
                f"own CPD has {', '.join(domains[name])}",
                code="inconsistent-table",
            )
    transposed = [variables.index(name) for name in axes]
    values = np.asarray(cpd.values, dtype=np.float64).transpose(transposed)
    indices = ([labels[name].index(label) for label in domains[name]] for name in axes)
    return np.ascontiguousarray(values[np.ix_(*indices)])


def _import_pgmpy(module: str) -> ModuleType:
    try:
        return importlib.import_module(f"pgmpy.{module}")
    except ImportError as error:
        raise MissingExtraError("pgmpy is not installed: pip install 'pgmpy>=1.0'") from error
