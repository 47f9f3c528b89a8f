"""Models in use: features, heads, training, loading, what is refused."""

import timm
import torch
from steps import step
from timm.models import load_checkpoint
from timm.models.vision_transformer import checkpoint_filter_fn


@step("features_only of a ResNet")
def _():
    model = timm.create_model("resnet10t", features_only=True).eval()
    with torch.no_grad():
        return model(torch.rand(1, 3, 64, 64)), model.feature_info.channels()


@step("forward_features, forward_head, forward_intermediates, another head")
def _():
    model = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=0).eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        pooled = model(x)
        features = model.forward_features(x)
        head = model.forward_head(features, pre_logits=True)
        middle = model.forward_intermediates(x, indices=[3, 7], intermediates_only=True)
        model.reset_classifier(3, "avg")
        return pooled, features, head, middle, model(x)


@step("one channel, another stride, dropped paths in training")
def _():
    model = timm.create_model(
        "convnext_atto", in_chans=1, num_classes=3, drop_rate=0.1, drop_path_rate=0.2
    )
    logits = model.train()(torch.rand(4, 1, 64, 64))
    logits.square().mean().backward()
    return logits, model.stem[0].weight.grad


@step("checkpointed blocks: the same gradients")
def _():
    model = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=3)
    model.set_grad_checkpointing()
    model(torch.rand(2, 3, 64, 64)).square().mean().backward()
    return model.patch_embed.proj.weight.grad


@step("positions resampled from a checkpoint of another size of picture")
def _():
    small = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=3)
    torch.save({"state_dict": small.state_dict()}, "small.pth")
    large = timm.create_model("vit_tiny_patch16_224", img_size=96, num_classes=3).eval()
    load_checkpoint(large, "small.pth", filter_fn=checkpoint_filter_fn)
    with torch.no_grad():
        return large.pos_embed, large(torch.rand(1, 3, 96, 96))


@step("fused batch normalization; the same logits from a reparameterized model")
def _():
    from timm.utils.model import reparameterize_model

    model = timm.create_model("repvit_m0_9", num_classes=3).eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        return model(x), reparameterize_model(model)(x)


@step("names of models and their configuration")
def _():
    config = timm.data.resolve_data_config({}, model=timm.create_model("resnet10t"))
    return timm.list_models("vit_tiny*"), timm.is_model("resnet18"), str(config)


@step("a checkpoint of another architecture is refused", refused=True)
def _():
    torch.save(timm.create_model("resnet10t", num_classes=3).state_dict(), "other.pth")
    load_checkpoint(timm.create_model("mobilenetv3_small_050", num_classes=3), "other.pth")


@step("a head of another size is refused", refused=True)
def _():
    torch.save(timm.create_model("resnet10t", num_classes=4).state_dict(), "four.pth")
    load_checkpoint(timm.create_model("resnet10t", num_classes=3), "four.pth")


@step("an unknown model is refused", refused=True)
def _():
    timm.create_model("resnet10x")


@step("a picture of another size is refused", refused=True)
def _():
    timm.create_model("vit_tiny_patch16_224", num_classes=3)(torch.rand(1, 3, 64, 64))
