"""The networks that can be trained, by the names of `settings.NETWORK_LAYERS`."""

from __future__ import annotations

from typing import Any

from mxnet.gluon.model_zoo import vision
from mxnet.gluon.model_zoo.vision.resnet import BasicBlockV1, BottleneckV1, ResNetV1

from imagenet_ops.settings import TrainingSettings

_RESNET_UNITS = {10: [1, 1, 1, 1], 18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3]}
_RESNET_UNITS[152] = [3, 8, 36, 3]
_FIRST_WITH_BOTTLENECKS = 50


def build_network(training: TrainingSettings, num_classes: int) -> Any:
    """A gluon HybridBlock without weights, from (batch, 3, height, width) to (batch, num_classes) logits."""
    depth = training.num_layers
    if training.network == "resnet":
        return _build_resnet(depth, training.width, num_classes)
    if training.network == "vgg":
        return vision.get_vgg(depth, classes=num_classes, batch_norm=True)
    builders = {"alexnet": vision.alexnet, "inception_v3": vision.inception_v3, "mobilenet": vision.mobilenet1_0}
    return builders[training.network](classes=num_classes)


def _build_resnet(depth: int, width: float, num_classes: int) -> Any:
    """Version 1 of https://arxiv.org/abs/1512.03385; depth 10 has one unit a stage."""
    bottleneck = depth >= _FIRST_WITH_BOTTLENECKS
    # Every stage has twice the channels of the one before: gluon's shortcut needs a difference.
    stem = round(64 * width)
    channels = [stem, *(stem * factor * (4 if bottleneck else 1) for factor in (1, 2, 4, 8))]
    return ResNetV1(BottleneckV1 if bottleneck else BasicBlockV1, _RESNET_UNITS[depth], channels, classes=num_classes)
