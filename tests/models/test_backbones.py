"""Backbones agree with plain loops, and read only what they may."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.models.panels import LAGS, OURS, small_job
from unmet.models.backbones import BACKBONES, Backbone, Inputs, Shape
from unmet.models.graph import Graph, adjacency, region_graph
from unmet.models.network import ForecastNetwork

HOURS, BATCH, NODES, PAST, FEATURES = 40, 2, 4, 2, 7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def network(backbone, lags=LAGS, outputs=3, seed=1):
    rng = np.random.default_rng(seed)
    graph = Graph(adjacency(rng.uniform(55.6, 55.65, NODES), rng.uniform(12.5, 12.55, NODES)))
    torch.manual_seed(seed)
    return ForecastNetwork(BACKBONES.named(backbone)(Shape(NODES, FEATURES, PAST, lags), graph), outputs).eval()


def inputs(hours=HOURS, seed=2):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(hours, BATCH, NODES, FEATURES))
    return Inputs(torch.from_numpy(values).float(), torch.from_numpy(rng.integers(0, 168, (hours, BATCH))))


def tgcn_by_hand(net, values):
    """The paper's equations hour by hour, region by region: graph features, hidden states and outputs."""
    w = {name: value.double().numpy() for name, value in net.state_dict().items()}
    a = net.backbone.graph.matrix.double().numpy()
    of_input, of_state = w["backbone.lstm.weight_ih_l0"], w["backbone.lstm.weight_hh_l0"]
    bias = w["backbone.lstm.bias_ih_l0"] + w["backbone.lstm.bias_hh_l0"]
    units = net.backbone.width
    gates = {gate: slice(i * units, (i + 1) * units) for i, gate in enumerate("ifco")}
    hours, batch, nodes, _ = values.shape
    features, states = [], np.zeros((hours, batch, nodes, units))
    for b in range(batch):
        h, c = np.zeros((nodes, units)), np.zeros((nodes, units))
        for t in range(hours):
            hidden = np.maximum(a @ values[t, b] @ w["backbone.w0"], 0)
            graph = sigmoid(a @ hidden @ w["backbone.w1"])
            features.append(graph)
            for v in range(nodes):
                before = {g: of_input[s] @ graph[v] + of_state[s] @ h[v] + bias[s] for g, s in gates.items()}
                i, f, o = (sigmoid(before[g]) for g in "ifo")
                c[v] = f * c[v] + i * np.tanh(before["c"])
                h[v] = o * np.tanh(c[v])
                states[t, b, v] = h[v]
    last = net.backbone.shape.lags - 1
    outputs = np.stack([states[last:, :, v] @ w["weight"][v] + w["bias"][v] for v in range(nodes)], 2)
    shape = (batch, hours, nodes, net.backbone.channels[1])
    return np.array(features).reshape(shape).swapaxes(0, 1), states, outputs


@torch.no_grad()
def test_the_tgcn_agrees_with_the_papers_equations_layer_by_layer():
    net, given = network("tgcn"), inputs()
    with torch.no_grad():
        net.bias.normal_()
    features, states, outputs = tgcn_by_hand(net, given.values.double().numpy())
    np.testing.assert_allclose(net.backbone.convolve(given.values).numpy(), features, atol=1e-5)
    np.testing.assert_allclose(net.backbone(given).numpy(), states[LAGS - 1 :], atol=1e-5)
    np.testing.assert_allclose(net(given).numpy(), outputs, atol=1e-5)


def test_the_tgcn_has_the_papers_sizes():
    net = network("tgcn")
    sizes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert sizes["backbone.w0"] == (FEATURES, 16)
    assert sizes["backbone.w1"] == (16, 8)
    assert sizes["backbone.lstm.weight_hh_l0"] == (4 * 32, 32)
    assert sizes["weight"] == (NODES, 32, 3)


@torch.no_grad()
def test_a_perceptron_and_a_linear_map_are_sums_over_the_lags():
    given = inputs()
    past = given.values[..., :PAST].double().numpy()
    ahead = given.values[..., PAST:].double().numpy()
    for name in ("linear", "mlp"):
        net = network(name)
        w = {key: value.double().numpy() for key, value in net.backbone.state_dict().items()}
        for target in (0, HOURS - LAGS):
            window = past[target : target + LAGS]
            first = np.einsum("hbnp,wph->bnw", window, w["past.weight"]) + w["past.bias"]
            first += ahead[target + LAGS - 1] @ w["ahead.weight"].T
            if name == "mlp":
                first = np.maximum(np.maximum(first, 0) @ w["second.weight"].T + w["second.bias"], 0)
            np.testing.assert_allclose(net.backbone(given)[target].numpy(), first, atol=1e-5)


@torch.no_grad()
def test_the_seasonal_profile_is_a_table_of_the_week():
    net, given = network("seasonal"), inputs()
    outputs = net(given)
    for target in range(HOURS - LAGS + 1):
        for b in range(BATCH):
            week = int(given.week[target + LAGS - 1, b])
            torch.testing.assert_close(outputs[target, b], net.weight[:, week] + net.bias)


@torch.no_grad()
@pytest.mark.parametrize("name", OURS)
def test_a_chunk_has_a_target_per_hour_and_starts_like_its_first_window(name):
    net, given = network(name), inputs()
    outputs = net(given)
    assert outputs.shape == (HOURS - LAGS + 1, BATCH, NODES, 3)
    window = net(Inputs(given.values[:LAGS], given.week[:LAGS]))
    torch.testing.assert_close(outputs[:1], window)


@torch.no_grad()
@pytest.mark.parametrize("name", ["mlp", "linear", "seasonal"])
def test_a_chunk_equals_its_windows_if_a_backbone_reads_only_its_lags(name):
    net, given = network(name), inputs()
    outputs = net(given)
    for begin in range(HOURS - LAGS + 1):
        part = slice(begin, begin + LAGS)
        torch.testing.assert_close(outputs[begin], net(Inputs(given.values[part], given.week[part]))[0])


@torch.no_grad()
@pytest.mark.parametrize("name", OURS)
def test_no_forecast_reads_later_hours(name):
    net, given = network(name), inputs()
    before = net(given)
    for hour in (LAGS - 1, LAGS, HOURS - 1):
        values, week = given.values.clone(), given.week.clone()
        values[hour] += 1
        week[hour] = (week[hour] + 1) % 168
        after = net(Inputs(values, week))
        first = hour - LAGS + 1  # values of this hour affect the next one
        torch.testing.assert_close(after[:first], before[:first], rtol=0, atol=0)
        changed = (after != before).any(-1)
        assert changed[first].all()


@torch.no_grad()
@pytest.mark.parametrize("name", OURS)
def test_forecasts_from_an_origin_do_not_read_later_demand(name):
    job = small_job(backbone=name)
    data, encoding = job.task.data, job.task.encoding
    torch.manual_seed(3)
    net = ForecastNetwork(job.backbone(encoding.shape(LAGS), Graph(region_graph(None, 3))), 3).eval()
    given = data.inputs(torch.tensor([0, 50]), 60)
    origins = torch.tensor([30, 45])
    other = given.values.clone()
    for b, origin in enumerate(origins):
        other[origin:, b, :, :2] = torch.rand(60 - int(origin), 3, 2)
    outputs = net(Inputs(encoding.blank(given.values, origins), given.week))
    torch.testing.assert_close(net(Inputs(encoding.blank(other, origins), given.week)), outputs, rtol=0, atol=0)
    seen = net(given)
    for b, origin in enumerate(origins):
        known = int(origin) - LAGS + 1  # targets up to the origin are one hour ahead
        torch.testing.assert_close(outputs[:known, b], seen[:known, b])


def test_blanking_removes_only_demand_from_the_origin_on():
    encoding = small_job().task.encoding
    values = torch.rand(10, 2, 3, 6) + 1
    blank = encoding.blank(values, torch.tensor([4, 10]))
    assert (blank[4:, 0, :, :2] == 0).all()
    assert (blank[:4, 0] == values[:4, 0]).all()
    assert (blank[:, 1] == values[:, 1]).all()
    assert (blank[..., 2:] == values[..., 2:]).all()


@pytest.mark.parametrize("name", ["mlp", "linear", "seasonal"])
def test_regions_do_not_read_each_other_without_the_graph(name):
    net, given = network(name), inputs()
    other = given.values.clone()
    other[:, :, 0] += 1
    with torch.no_grad():
        torch.testing.assert_close(net(given._replace(values=other))[:, :, 1:], net(given)[:, :, 1:])


def test_the_tgcn_reads_nearby_regions():
    net, given = network("tgcn"), inputs()
    other = given.values.clone()
    other[:, :, 0] += 1
    with torch.no_grad():
        assert (net(given._replace(values=other))[:, :, 1] != net(given)[:, :, 1]).any()


def test_a_backbone_without_forward_is_refused():
    class Nothing(Backbone):
        name = "nothing"
        width = 1

    with pytest.raises(TypeError, match="forward"):
        Nothing(Shape(NODES, FEATURES, PAST, LAGS), Graph(region_graph(None, NODES)))
