"""The graph of regions agrees with its formula, pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unmet.geo import haversine_km
from unmet.models import graph as room
from unmet.models.graph import Graph, adjacency, region_graph

places = st.lists(st.tuples(st.floats(55.5, 55.8), st.floats(12.3, 12.7)), min_size=1, max_size=12)


def by_hand(points, tied):
    """D^-1/2 A D^-1/2 with A_ij = exp(-km) if i and j are connected, and A_ii = 1."""
    nodes = len(points)
    a = np.zeros((nodes, nodes))
    for i in range(nodes):
        for j in range(nodes):
            if i == j:
                a[i, j] = 1
            elif tied(i, j):
                a[i, j] = math.exp(-float(haversine_km(*points[i], *points[j])))
    degree = a.sum(axis=1)
    return np.array([[a[i, j] / math.sqrt(degree[i] * degree[j]) for j in range(nodes)] for i in range(nodes)])


@given(places)
def test_every_pair_has_the_weight_of_the_formula(points):
    lat, lon = np.array(points).T
    ours = adjacency(lat, lon).toarray()
    np.testing.assert_allclose(ours, by_hand(points, lambda _i, _j: True), rtol=1e-9, atol=1e-12)


@given(places, st.one_of(st.none(), st.integers(1, 12)))
def test_weights_are_symmetric_and_do_not_amplify(points, neighbours):
    lat, lon = np.array(points).T
    ours = adjacency(lat, lon, neighbours).toarray()
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, ours.T, atol=1e-15)
    assert np.linalg.eigvalsh(ours).max() == pytest.approx(1, abs=1e-9)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 12))
def test_with_neighbours_only_the_nearest_are_connected(seed, nodes, neighbours):
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(55.5, 55.8, nodes), rng.uniform(12.3, 12.7, nodes)])
    km = np.array([[float(haversine_km(*a, *b)) for b in points] for a in points])
    nearest = [set(np.argsort(row)[: neighbours + 1]) for row in km]
    expected = by_hand(points, lambda i, j: j in nearest[i] or i in nearest[j])
    ours = adjacency(*points.T, neighbours).toarray()
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-12)
    if neighbours >= nodes - 1:
        assert (ours == adjacency(*points.T).toarray()).all()


@pytest.mark.parametrize("neighbours", [None, 3, 16])
@pytest.mark.parametrize("nodes", [1, 2, 30])
def test_regions_at_one_position_have_equal_weights(nodes, neighbours):
    ours = adjacency(np.full(nodes, 55.7), np.full(nodes, 12.5), neighbours).toarray()
    assert np.isfinite(ours).all()
    assert (np.diag(ours) > 0).all()
    if neighbours is None:
        np.testing.assert_allclose(ours, 1 / nodes)


def test_regions_a_continent_apart_are_not_connected():
    ours = adjacency([55.7, -33.9, 40.7], [12.5, 151.2, -74.0]).toarray()
    np.testing.assert_array_equal(ours, np.eye(3))


def test_regions_without_positions_are_not_connected():
    np.testing.assert_array_equal(region_graph(None, 4).toarray(), np.eye(4))


def test_many_regions_are_connected_to_the_nearest_only(monkeypatch):
    points = np.random.default_rng(1).uniform([55.5, 12.3], [55.8, 12.7], (30, 2))
    assert (region_graph(points, 30) != adjacency(*points.T)).nnz == 0
    monkeypatch.setattr(room, "DENSE_UP_TO", 29)
    assert (region_graph(points, 30) != adjacency(*points.T, room.NEIGHBOURS)).nnz == 0
    assert region_graph(points, 30).nnz < 30 * 30


@pytest.mark.parametrize("neighbours", [None, 2])
def test_spreading_is_a_matrix_product_at_each_hour_dense_or_sparse(monkeypatch, neighbours):
    rng = np.random.default_rng(2)
    weights = adjacency(rng.uniform(55.5, 55.8, 7), rng.uniform(12.3, 12.7, 7), neighbours)
    values = torch.from_numpy(rng.normal(size=(5, 3, 7, 4))).float().requires_grad_()
    dense = Graph(weights)
    monkeypatch.setattr(room, "DENSE_UP_TO", 6)
    few = Graph(weights)
    assert (dense.dense, few.dense) == (True, False)
    expected = np.einsum("nm,hbmf->hbnf", weights.toarray(), values.detach().numpy())
    gradients = []
    for graph in (dense, few):
        spread = graph.spread(values)
        np.testing.assert_allclose(spread.detach().numpy(), expected, atol=1e-6)
        gradients.append(torch.autograd.grad((spread**2).sum(), values)[0])
    torch.testing.assert_close(*gradients)


def test_the_graph_is_neither_learned_nor_stored():
    graph = Graph(sparse.csr_array(np.eye(3)))
    assert not list(graph.parameters())
    assert not graph.state_dict()
