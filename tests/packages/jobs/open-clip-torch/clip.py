"""CLIP: towers, tokenizer, transforms, losses, training, saving, loading, zero-shot classes."""

import json

import open_clip
import torch
from open_clip import factory
from open_clip.loss import SigLipLoss
from PIL import Image
from steps import step
from torch.nn import functional as F

TINY = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}
OTHERS = {
    "tiny": TINY,
    "tiny-resnet": {
        **TINY,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
    },
    "tiny-timm": {
        **TINY,
        "vision_cfg": {
            "timm_model_name": "resnet10t",
            "timm_model_pretrained": False,
            "timm_pool": "avg",
            "timm_proj": "linear",
            "image_size": 64,
        },
    },
    "tiny-siglip": {
        **TINY,
        "init_logit_bias": -10,
        "text_cfg": {**TINY["text_cfg"], "pool_type": "last", "no_causal_mask": True},
        "custom_text": True,
    },
    "tiny-coca": {
        **TINY,
        "multimodal_cfg": {
            "context_length": 16,
            "vocab_size": 49408,
            "width": 32,
            "heads": 2,
            "layers": 1,
        },
        "vision_cfg": {
            **TINY["vision_cfg"],
            "attentional_pool": True,
            "attn_pooler_heads": 2,
            "output_tokens": True,
        },
        "text_cfg": {**TINY["text_cfg"], "embed_cls": True, "output_tokens": True},
        "custom_text": True,
    },
}
for name, config in OTHERS.items():
    with open(f"{name}.json", "w") as file:
        json.dump(config, file)
factory.add_model_config(".")


def words(*texts):
    return open_clip.SimpleTokenizer(context_length=16)(list(texts))


def words_tokenizer(texts):
    return words(*texts)


def pictures(count, side=32):
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(2))


@step("tokens of texts, decoded again")
def _():
    tokenizer = open_clip.SimpleTokenizer(context_length=16)
    tokens = tokenizer(["a photo of a cat", "an  odd Word!", "x" * 60])
    return tokens, [tokenizer.decode(row[row > 0].tolist()) for row in tokens]


for name, side in (("tiny", 32), ("tiny-resnet", 64), ("tiny-timm", 64), ("tiny-siglip", 32)):

    @step(f"{name}: features, the loss and gradients", name, side)
    def _(name, side):
        model = open_clip.create_model(name)
        kind = SigLipLoss if name == "tiny-siglip" else open_clip.ClipLoss
        out = model(pictures(4, side), words("a cat", "a dog", "a red bird", "two fish"))
        loss = kind()(*out)
        loss.backward()
        return out, loss, model.logit_scale.grad


@step("CoCa: logits, loss, generated text")
def _():
    model = open_clip.create_model("tiny-coca")
    torch.nn.init.normal_(model.text_decoder.text_projection, std=0.1)  # made without values
    out = model(pictures(2), words("a cat", "a dog"))
    loss = open_clip.CoCaLoss(caption_loss_weight=1.0, clip_loss_weight=1.0, pad_id=0)
    losses = loss(
        out["image_features"],
        out["text_features"],
        out["logits"],
        out["labels"],
        out["logit_scale"],
    )
    sum(losses).backward()
    return losses, out["logits"]


@step("training with AdamW in groups; losses, the weights after")
def _():
    model = open_clip.create_model("tiny")
    no_decay = [p for p in model.parameters() if p.ndim < 2]
    decay = [p for p in model.parameters() if p.ndim >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": no_decay, "weight_decay": 0.0}, {"params": decay, "weight_decay": 0.2}], lr=1e-3
    )
    x, texts, losses = pictures(4), words("a cat", "a dog", "a bird", "a fish"), []
    for _ in range(4):
        image, text, scale = model(x, texts)
        loss = open_clip.ClipLoss()(image, text, scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.visual.conv1.weight


@step("transforms for training and evaluation")
def _():
    picture = Image.effect_mandelbrot((50, 40), (-2, -1, 1, 1), 20).convert("RGB")
    _, train, evaluate = open_clip.create_model_and_transforms("tiny")
    return evaluate(picture), train(picture)


@step("saved, loaded as pretrained: zero-shot probabilities")
def _():
    model = open_clip.create_model("tiny")
    torch.save({"state_dict": {f"module.{k}": v for k, v in model.state_dict().items()}}, "tiny.pt")
    model, _, _ = open_clip.create_model_and_transforms("tiny", pretrained="tiny.pt")
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        image = F.normalize(model.encode_image(pictures(2)), dim=-1)
        text = F.normalize(model.encode_text(words("a cat", "a dog", "a bird")), dim=-1)
    with torch.no_grad():
        exact = model.encode_image(pictures(2), normalize=True), model.encode_text(words("x"))
    return exact, (image.float() @ text.float().T).argmax(1).shape


@step("a zero-shot classifier, intermediates, a locked tower")
def _():
    model = open_clip.create_model("tiny")
    classifier = open_clip.build_zero_shot_classifier(
        model, words_tokenizer, ["cat", "dog"], [lambda c: f"a photo of a {c}", "{}, drawn".format]
    )
    middle = model.forward_intermediates(pictures(1), words("a cat"), image_indices=[1])
    model.lock_image_tower(unlocked_groups=1)
    free = [name for name, p in model.named_parameters() if p.requires_grad]
    return classifier, middle["image_intermediates"], free


@step("precision bf16; checkpointed gradients")
def _():
    model = open_clip.create_model("tiny", precision="bf16").eval()
    low = model.encode_image(pictures(1).bfloat16()).float()
    similarity = F.cosine_similarity(low, model.float().encode_image(pictures(1)))
    other = open_clip.create_model("tiny")
    other.set_grad_checkpointing()
    image, text, scale = other(pictures(2), words("a", "b"))
    open_clip.ClipLoss()(image, text, scale).backward()
    return similarity, other.visual.conv1.weight.grad


@step("positions resized for larger pictures")
def _():
    model = open_clip.create_model("tiny")
    torch.save(model.state_dict(), "positions.pt")
    larger = open_clip.create_model("tiny", pretrained="positions.pt", force_image_size=48).eval()
    return larger.visual.positional_embedding, larger.encode_image(pictures(1, 48))


@step("an unknown model is refused", refused=True)
def _():
    open_clip.create_model("tiny-nonsense")


@step("weights of another width are refused", refused=True)
def _():
    state = open_clip.create_model("tiny").state_dict()
    state["text_projection"] = torch.zeros(32, 16)
    torch.save(state, "wide.pt")
    open_clip.create_model("tiny", pretrained="wide.pt")


@step("a picture of another size is refused", refused=True)
def _():
    open_clip.create_model("tiny").encode_image(pictures(1, 48))


@step("a file that is not there is refused", refused=True)
def _():
    open_clip.create_model("tiny", pretrained="absent.pt")
