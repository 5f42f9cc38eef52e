"""Circuits: simplification, sharing, limits, and results against einsum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import examples

from dowise.model.circuit import ONE, QUOTIENT, ZERO, Builder, TooLargeError
from dowise.model.elimination import Algebra, AxisTable
from dowise.model.kernels import run_circuit, unrolled


def evaluate(circuit, inputs, undefined=0.0):
    """Run a circuit on numbers for the builder's blocks: {block: numbers}."""
    values = np.full((circuit.slots, 1), np.nan)
    values[: len(circuit.constants), 0] = circuit.constants
    blocks = zip(circuit.blocks, circuit.block_slots, circuit.block_sizes, strict=True)
    for block, slot, size in blocks:
        values[slot : slot + size, 0] = inputs[block]
    run_circuit(values, 1, circuit.operations, np.array([undefined]))
    return values[circuit.results, 0]


def test_products_with_constants_are_simplified():
    builder = Builder()
    a, b = builder.inputs(2)
    half = builder.constant(0.5)
    assert builder.constant(0.5) == half and builder.constant(1.0) == ONE
    sums = builder.sums(
        [[a, b], [a, b], [ZERO, b], [a, ZERO], [a, b]],
        [[ZERO, ZERO], [ONE, ZERO], [a, ONE], [half, b], [ONE, ONE]],
    )
    assert sums[:3].tolist() == [ZERO, a, b]
    assert sums[3] == builder.products(half, a)
    assert len({*sums.tolist()}) == 5
    assert builder.finish(sums[:3]).multiplications == 0
    numbers = evaluate(builder.finish(sums), {0: [3.0, 5.0]})
    assert numbers.tolist() == [0.0, 3.0, 5.0, 1.5, 8.0]


def test_equal_operations_are_shared():
    builder = Builder()
    a, b, c = builder.inputs(3)
    total = builder.sums([[a, c]], [[b, b]])
    assert total == builder.sums([[b, b]], [[c, a]])
    assert builder.quotients([a], [b]) == builder.quotients([a], [b])
    assert builder.quotients([a], [b]) != builder.quotients([b], [a])
    assert builder.finish(np.concatenate([total, total])).multiplications == 2


def test_unused_operations_and_inputs_are_left_out():
    builder = Builder()
    used, unused = builder.inputs(2), builder.inputs(3)
    result = builder.products(used[:1], used[1:])
    builder.products(result, unused[:1])
    circuit = builder.finish(result)
    assert circuit.blocks.tolist() == [0] and len(circuit.operations.outputs) == 1
    assert len(circuit.constants) == 0 and circuit.slots == 3


def test_quotients_by_zero_are_set_by_the_caller():
    builder = Builder()
    a, b = builder.inputs(2)
    circuit = builder.finish(builder.quotients([a], [b]))
    assert circuit.operations.kinds.tolist() == [QUOTIENT]
    assert evaluate(circuit, {0: [3.0, 4.0]}) == 0.75
    for undefined in (0.0, 1.0):
        assert evaluate(circuit, {0: [3.0, 0.0]}, undefined) == undefined


def test_a_circuit_above_its_limit_raises():
    builder = Builder()
    a, b, c = builder.inputs(3)
    whole = builder.products([a], [b])
    builder.limit = builder.count
    with pytest.raises(TooLargeError):
        builder.products([b], [c])
    with pytest.raises(TooLargeError):
        builder.inputs(1)
    with pytest.raises(TooLargeError):
        Algebra(builder, [100, 100]).product([AxisTable((0,), np.zeros(100, int))] * 2)
    assert builder.products([b], [a]) == whole  # an existing value
    assert evaluate(builder.finish(whole), {0: [2.0, 3.0, 5.0]}) == 6.0


def test_the_tape_contains_the_circuit():
    builder = Builder()
    inputs = builder.input_blocks(np.array([2, 3]))
    half = builder.constant(0.5)
    sums = builder.sums([inputs[:2], inputs[2:4]], [[half, half], inputs[3:]])
    circuit = builder.finish(np.append(sums, builder.quotients(sums[:1], sums[1:])).reshape(1, 3))
    program = unrolled.py_func(circuit.tape)
    assert program.slots == circuit.slots
    for name in ("constants", "block_slots", "block_sizes", "results"):
        np.testing.assert_array_equal(getattr(program, name), getattr(circuit, name))
    for array, expected in zip(program.operations, circuit.operations, strict=True):
        np.testing.assert_array_equal(array, expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 6))
@examples(80)
def test_elimination_agrees_with_einsum(seed, factors, variables):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=variables).tolist()
    builder = Builder()
    algebra = Algebra(builder, sizes)
    tables, inputs, arrays = [], {}, []
    for block in range(factors):
        axes = rng.permutation(variables)[: rng.integers(1, min(4, variables) + 1)].tolist()
        numbers = rng.random([sizes[v] for v in axes])
        values = builder.inputs(numbers.size).reshape(numbers.shape)
        values = np.where(numbers < 0.2, ZERO, np.where(numbers > 0.8, ONE, values))
        tables.append(AxisTable.of(axes, values))
        inputs[block] = numbers.ravel()
        arrays.append((np.where(numbers < 0.2, 0, np.where(numbers > 0.8, 1, numbers)), axes))
    used = sorted({v for _, axes in arrays for v in axes})
    summed = rng.permutation(used)[: rng.integers(0, len(used) + 1)].tolist()
    table = algebra.product(algebra.eliminated(tables, summed))
    circuit = builder.finish(table.values)
    spec = [part for array, axes in arrays for part in (array, axes)]
    truth = np.einsum(*spec, [v for v in used if v not in summed])
    assert table.axes == tuple(v for v in used if v not in summed)
    np.testing.assert_allclose(evaluate(circuit, inputs), truth, rtol=1e-12)
