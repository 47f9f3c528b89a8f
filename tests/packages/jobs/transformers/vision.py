"""Models of pictures from a folder: outputs, loss, gradients."""

import numpy as np
import torch
import transformers
from steps import step

transformers.logging.set_verbosity_error()
VIT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "initializer_range": 0.1,
}
STAGES = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "image_size": 32, "patch_size": 4}
CONVNEXT = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "image_size": 32}
PYRAMID = {"hidden_sizes": [8, 16, 16, 24], "num_attention_heads": [1, 2, 2, 4]}
CLASSIFIERS = {
    "beit": VIT | {"use_mask_token": False},
    "bit": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_groups": 2},
    "convnext": CONVNEXT,
    "convnextv2": CONVNEXT,
    "data2vec-vision": VIT,
    "deit": VIT,
    "dinov2": VIT,
    "dinov2_with_registers": VIT,
    "efficientnet": {
        "image_size": 32,
        "hidden_dim": 128,
        "width_coefficient": 0.1,
        "depth_coefficient": 0.2,
    },
    "focalnet": STAGES
    | {"focal_levels": [1, 1], "focal_windows": [3, 3], "hidden_sizes": [16, 32]},
    "ijepa": VIT,
    "levit": {"hidden_sizes": [16, 32, 48], "depths": [1, 1, 1], "image_size": 64},
    "mobilenet_v1": {"depth_multiplier": 0.25, "image_size": 32},
    "mobilenet_v2": {"depth_multiplier": 0.25, "image_size": 32},
    "mobilevit": {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32]},
    "poolformer": {"hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1]},
    "pvt": PYRAMID | {"depths": [1, 1, 1, 1], "image_size": 64},
    "pvt_v2": PYRAMID | {"depths": [1, 1, 1, 1], "image_size": 64},
    "regnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "groups_width": 8},
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
    "segformer": {"hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1]},
    "siglip": {"vision_config": VIT, "text_config": {"hidden_size": 32}},
    "swiftformer": {"depths": [1, 1, 1, 1], "embed_dims": [8, 16, 24, 32]},
    "swin": STAGES | {"window_size": 4},
    "swinv2": STAGES | {"window_size": 4},
    "vit": VIT,
    "vit_msn": VIT,
}


def batch(size=32, count=2):
    numbers = np.random.default_rng(0).standard_normal((count, 3, size, size))
    return torch.from_numpy(numbers).float()


for name, sizes in CLASSIFIERS.items():

    @step(f"{name}: classification", name, sizes)
    def _(name, sizes):
        kind = transformers.AutoModelForImageClassification
        config = transformers.AutoConfig.for_model(name, num_labels=4, architectures=[], **sizes)
        kind.from_config(config).save_pretrained(name)
        model = kind.from_pretrained(name).eval()
        output = model(batch(32 if name == "siglip" or sizes.get("image_size") == 32 else 64))
        loss = torch.nn.functional.cross_entropy(output.logits, torch.tensor([0, 3]))
        loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        return output.logits, loss, torch.stack(gradients)


@step("the features of a ResNet, a Swin and a DINOv2 as backbones")
def _():
    found = []
    for name in ("ResNet", "Swin", "Dinov2"):
        kind = getattr(transformers, f"{name}Backbone")
        model = kind.from_pretrained(name.lower(), out_indices=[1, 2]).eval()
        found.append(model(batch()).feature_maps)
    return found


@step("the pooled features of a ViT, with attentions")
def _():
    model = transformers.ViTModel.from_pretrained("vit", attn_implementation="eager").eval()
    output = model(batch(), output_attentions=True)
    return output.pooler_output, output.attentions


@step("a ViT's positions interpolated to a larger picture")
def _():
    model = transformers.ViTForImageClassification.from_pretrained("vit").eval()
    return model(batch(48), interpolate_pos_encoding=True).logits


@step("masked autoencoder: loss and reconstruction")
def _():
    sizes = {
        "decoder_hidden_size": 16,
        "decoder_num_hidden_layers": 1,
        "decoder_num_attention_heads": 2,
    }
    config = transformers.ViTMAEConfig(**VIT, **sizes, decoder_intermediate_size=24)
    model = transformers.ViTMAEForPreTraining(config).eval()
    noise = torch.from_numpy(np.random.default_rng(1).random((2, 16))).float()
    output = model(batch(), noise=noise)
    output.loss.backward()
    return output.loss, output.logits, next(model.parameters()).grad


@step("SegFormer: segmentation, loss, and the map after the processor")
def _():
    config = transformers.AutoConfig.for_model(
        "segformer", num_labels=4, **CLASSIFIERS["segformer"]
    )
    transformers.SegformerForSemanticSegmentation(config).save_pretrained("segmenter")
    model = transformers.SegformerForSemanticSegmentation.from_pretrained("segmenter").eval()
    output = model(batch(64), labels=torch.arange(2 * 64 * 64).view(2, 64, 64) % 4)
    output.loss.backward()
    processor = transformers.SegformerImageProcessor()
    maps = processor.post_process_semantic_segmentation(output, target_sizes=[(32, 48)] * 2)
    return output.loss, output.logits, [each.flatten().bincount(minlength=4) for each in maps]


DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_queries": 6,
    "num_labels": 3,
}
LABELS = [
    {
        "class_labels": torch.tensor([0, 2]),
        "boxes": torch.tensor([[0.5, 0.5, 0.4, 0.2], [0.3, 0.6, 0.2, 0.2]]),
    },
    {"class_labels": torch.tensor([1]), "boxes": torch.tensor([[0.2, 0.3, 0.2, 0.4]])},
]


def resnet(*out):
    return transformers.ResNetConfig(**CLASSIFIERS["resnet"], out_features=list(out))


for name, kind, sizes in (
    ("DETR", "Detr", {}),
    ("Conditional DETR", "ConditionalDetr", {}),
    ("Table Transformer", "TableTransformer", {}),
    ("Deformable DETR", "DeformableDetr", {"num_feature_levels": 2}),
):

    @step(f"{name}: loss by matching, gradients, boxes of the processor", kind, sizes)
    def _(kind, sizes):
        stages = ("stage1", "stage2")[-sizes.get("num_feature_levels", 1) :]
        config = getattr(transformers, kind + "Config")(
            backbone_config=resnet(*stages), **DETR | sizes
        )
        model = getattr(transformers, kind + "ForObjectDetection")
        model(config).save_pretrained(kind)
        model = model.from_pretrained(kind).eval()
        output = model(batch(64), labels=LABELS)
        output.loss.backward()
        processor = transformers.DetrImageProcessor()
        boxes = processor.post_process_object_detection(output, threshold=0.0)
        if kind == "Detr":
            return output.loss, output.loss_dict, output.logits, boxes
        return output.loss, output.loss_dict, output.logits, output.pred_boxes


@step("YOLOS: detection")
def _():
    config = transformers.YolosConfig(
        **VIT | {"image_size": [32, 32]}, num_detection_tokens=5, num_labels=3
    )
    model = transformers.YolosForObjectDetection(config).eval()
    output = model(batch(), labels=LABELS)
    output.loss.backward()
    return output.loss, output.pred_boxes


@step("Depth Anything: depth")
def _():
    backbone = transformers.Dinov2Config(**VIT, out_indices=[1, 2], reshape_hidden_states=False)
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=8,
        reassemble_hidden_size=32,
        reassemble_factors=[2, 1],
        neck_hidden_sizes=[8, 16],
        fusion_hidden_size=8,
        head_hidden_size=4,
    )
    model = transformers.DepthAnythingForDepthEstimation(config).eval()
    return model(batch()).predicted_depth


@step("VideoMAE and TimeSformer: classification of videos")
def _():
    video = batch(count=8).view(2, 4, 3, 32, 32)
    found = []
    for name, sizes in (("videomae", {"tubelet_size": 2}), ("timesformer", {})):
        config = transformers.AutoConfig.for_model(name, **VIT, num_frames=4, num_labels=3, **sizes)
        model = transformers.AutoModelForVideoClassification.from_config(config).eval()
        found.append(model(video).logits)
    return found


for name in (
    "CLIPImageProcessor",
    "ViTImageProcessor",
    "ConvNextImageProcessor",
    "DetrImageProcessor",
):

    @step(f"{name}: from folder, pictures of two sizes", name)
    def _(name):
        sizes = {"size": {"shortest_edge": 40, "longest_edge": 64}} if "Detr" in name else {}
        if name == "ViTImageProcessor":
            sizes = {"size": {"height": 24, "width": 32}}
        getattr(transformers, name)(**sizes).save_pretrained(name)
        processor = transformers.AutoImageProcessor.from_pretrained(name)
        draw = np.random.default_rng(0).integers
        pictures = [draw(0, 256, (h, w, 3), dtype=np.uint8) for h, w in ((50, 40), (30, 64))]
        return processor(pictures, return_tensors="pt")
