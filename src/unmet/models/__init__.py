"""Models: graph, backbones, likelihoods, training and the forecaster. Panel -> model -> forecast."""
