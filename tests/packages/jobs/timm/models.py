"""Models: forward, gradients, features."""

import timm
import torch
from steps import step

NAMES = ["vit_tiny_patch16_224", "efficientnet_b0", "convnext_atto"]


for name in NAMES:

    @step(f"{name}: logits and the gradient of the first weight", name)
    def _(name):
        model = timm.create_model(name, num_classes=5).train()
        logits = model(torch.rand(2, 3, 224, 224))
        logits.square().sum().backward()
        return logits, next(model.parameters()).grad


@step("features_only of a ResNet")
def _():
    model = timm.create_model("resnet10t", features_only=True).eval()
    with torch.no_grad():
        return model(torch.rand(1, 3, 64, 64))
