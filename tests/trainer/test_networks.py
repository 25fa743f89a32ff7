"""Every network that the settings allow can be built."""

from __future__ import annotations

import mxnet as mx
import pytest

from imagenet_ops.settings import NETWORK_LAYERS, NETWORK_LEAST_PIXELS, TrainingSettings
from imagenet_ops.trainer.networks import build_network

ALL = [(network, layers) for network, depths in NETWORK_LAYERS.items() for layers in depths]


def layers_of(network: str, num_layers: int, width: float = 1.0) -> mx.gluon.Block:
    training = TrainingSettings(
        network=network,  # type: ignore[arg-type]
        num_layers=num_layers,
        width=width,
        image_pixels=max(224, NETWORK_LEAST_PIXELS[network]),
    )
    return build_network(training, 11)


@pytest.mark.parametrize("at_least", [True, False], ids=["least", "224"])
@pytest.mark.parametrize(("network", "num_layers"), ALL)
def test_a_network_maps_images_to_one_number_a_class(network: str, num_layers: int, at_least: bool) -> None:
    least = NETWORK_LEAST_PIXELS[network]
    edge = least if at_least else max(224, least)
    symbol = layers_of(network, num_layers)(mx.sym.var("data"))
    _, outputs, _ = symbol.infer_shape(data=(1, 3, edge, edge))
    assert outputs == [(1, 11)]


@pytest.mark.parametrize("network", ["alexnet", "inception_v3", "vgg"])
def test_no_network_takes_smaller_images_than_its_least(network: str) -> None:
    edge = NETWORK_LEAST_PIXELS[network] - 1
    symbol = layers_of(network, NETWORK_LAYERS[network][0])(mx.sym.var("data"))
    with pytest.raises(mx.base.MXNetError):
        symbol.infer_shape(data=(1, 3, edge, edge))


@pytest.mark.parametrize("num_layers", NETWORK_LAYERS["resnet"])
def test_a_resnet_is_as_deep_as_it_says(num_layers: int) -> None:
    """Its convolutions but those of the shortcuts, and the dense layer."""
    symbol = layers_of("resnet", num_layers)(mx.sym.var("data"))
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=(1, 3, 64, 64))[0], strict=True))
    weights = [shape for name, shape in shapes.items() if name.endswith("weight")]
    shortcuts = [name for name in shapes if name.endswith("weight") and "down" in name]
    num_shortcuts = len(shortcuts) or (3 if num_layers in (10, 18, 34) else 4)
    assert len(weights) - num_shortcuts == num_layers


@pytest.mark.parametrize("num_layers", [10, 50])
@pytest.mark.parametrize(("width", "stem"), [(2.0, 128), (1.0, 64), (0.25, 16), (0.125, 8)])
def test_the_width_is_a_factor_on_all_channels(num_layers: int, width: float, stem: int) -> None:
    symbol = layers_of("resnet", num_layers, width)(mx.sym.var("data"))
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=(1, 3, 64, 64))[0], strict=True))
    convolutions = [shape for name, shape in shapes.items() if "conv" in name and name.endswith("weight")]
    dense = next(shape for name, shape in shapes.items() if "dense" in name and name.endswith("weight"))
    assert convolutions[0] == (stem, 3, 7, 7)
    assert dense == (11, stem * 8 * (4 if num_layers == 50 else 1))


def test_vgg_learns_with_batch_normalisation() -> None:
    """Without it, VGG does not begin to learn at the usual learning rate."""
    assert any("batchnorm" in name for name in layers_of("vgg", 11).collect_params())
