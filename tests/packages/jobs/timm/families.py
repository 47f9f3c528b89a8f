"""Models of many families: logits and gradients."""

import timm
import torch
from steps import step

NAMES = {
    "vit_tiny_patch16_224": 224,
    "efficientnet_b0": 96,
    "convnext_atto": 96,
    "mobilenetv3_small_050": 96,
    "resnet10t": 96,
    "regnetx_002": 96,
    "densenet121": 64,
    "ghostnet_050": 96,
    "mixer_s32_224": 224,
    "swin_tiny_patch4_window7_224": 224,
    "coat_tiny": 224,
    "edgenext_xx_small": 96,
    "repvit_m0_9": 96,
    "levit_128s": 224,
    "poolformer_s12": 96,
    "maxvit_rmlp_pico_rw_256": 256,
    "fastvit_t8": 96,
    "mobilenetv4_conv_small": 96,
    "hgnetv2_b0": 96,
    "tiny_vit_5m_224": 224,
    "eva02_tiny_patch14_224": 224,
    "vgg11": 64,
    "inception_next_atto": 96,
    "starnet_s1": 96,
}


for name, side in NAMES.items():

    @step(f"{name}: logits and the gradient of the first weight", name, side)
    def _(name, side):
        model = timm.create_model(name, num_classes=5).eval()
        # PyTorch's gradients of batch norm are wrong for one picture whose gradient is transposed.
        logits = model(torch.rand(2, 3, side, side))
        (logits - 1).square().sum().backward()
        return logits, next(model.parameters()).grad
