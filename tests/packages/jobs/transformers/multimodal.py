"""Models of pictures and text from a folder: outputs, loss, gradients, greedy tokens."""

import numpy as np
import torch
import transformers
from steps import step

transformers.logging.set_verbosity_error()
TEXT = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 8,
    "initializer_range": 0.1,
}
PICTURES = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 16, 16))).float()
TOKENS = torch.tensor([[1, 9, 33, 71, 2], [1, 20, 64, 3, 2]])


def norms(model):
    return torch.stack(
        [torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()]
    )


def reloaded(kind, config, folder):
    kind(config).save_pretrained(folder)
    return kind.from_pretrained(folder).eval()


for name, kind, sizes in (
    ("CLIP", "CLIP", {"projection_dim": 16}),
    ("SigLIP", "Siglip", {}),
    ("Chinese-CLIP", "ChineseCLIP", {"projection_dim": 16}),
    ("AltCLIP", "AltCLIP", {"projection_dim": 16}),
    ("CLIPSeg", "CLIPSeg", {"projection_dim": 16}),
    ("OWL-ViT", "OwlViT", {"projection_dim": 16}),
    ("GroupViT", "GroupViT", {"projection_dim": 16, "projection_intermediate_dim": 32}),
    ("BLIP", "Blip", {"projection_dim": 16}),
):

    @step(f"{name}: contrastive loss, similarity, gradients", name, kind, sizes)
    def _(name, kind, sizes):
        text = TEXT | ({"projection_dim": 16} if kind == "Siglip" else {})
        text |= {"projection_size": 32} if kind == "Siglip" else {}
        vision = VISION | (
            {"depths": [1, 1, 1], "num_group_tokens": [4, 2, 0]} if kind == "GroupViT" else {}
        )
        vision |= {"num_output_groups": [4, 2, 0]} if kind == "GroupViT" else {}
        config = getattr(transformers, kind + "Config")(
            text_config=text, vision_config=vision, **sizes
        )
        model = reloaded(getattr(transformers, kind + "Model"), config, kind)
        output = model(input_ids=TOKENS, pixel_values=PICTURES, return_loss=True)
        output.loss.backward()
        return output.loss, output.logits_per_image, norms(model)


@step("CLIP: features of pictures and of texts alone")
def _():
    text, vision = TEXT | {"projection_dim": 16}, VISION | {"projection_dim": 16}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = reloaded(transformers.CLIPModel, config, "features")
    pictures = transformers.CLIPVisionModelWithProjection.from_pretrained("features").eval()
    texts = transformers.CLIPTextModelWithProjection.from_pretrained("features").eval()
    together = model(input_ids=TOKENS, pixel_values=PICTURES)
    return (
        together.image_embeds,
        pictures(PICTURES).image_embeds,
        texts(TOKENS).text_embeds,
    )


@step("BLIP: captions")
def _():
    text = TEXT | {"encoder_hidden_size": 32, "sep_token_id": 2}
    config = transformers.BlipConfig(text_config=text, vision_config=VISION)
    model = reloaded(transformers.BlipForConditionalGeneration, config, "captions")
    output = model(pixel_values=PICTURES, input_ids=TOKENS, labels=TOKENS)
    output.loss.backward()
    return output.loss, norms(model), model.generate(PICTURES, max_new_tokens=6)


def qwen():
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    return TEXT | {"num_key_value_heads": 2, "rope_parameters": rope}


LLAMA = TEXT | {"model_type": "llama", "num_key_value_heads": 2}
CLIP = VISION | {"model_type": "clip_vision_model"}


@step("LLaVA: loss, gradients, greedy tokens")
def _():
    config = transformers.LlavaConfig(
        text_config=LLAMA, vision_config=CLIP, image_token_index=90, vision_feature_layer=-1
    )
    model = reloaded(transformers.LlavaForConditionalGeneration, config, "llava")
    tokens = torch.tensor([[1, 90, 90, 90, 90, 7, 9], [1, 90, 90, 90, 90, 12, 5]])
    output = model(input_ids=tokens, pixel_values=PICTURES, labels=tokens)
    output.loss.backward()
    written = model.generate(
        input_ids=tokens, pixel_values=PICTURES, max_new_tokens=6, do_sample=False
    )
    return output.loss, output.logits, norms(model), written


@step("PaliGemma: loss, greedy tokens")
def _():
    text = TEXT | {"model_type": "gemma", "num_key_value_heads": 1, "head_dim": 8}
    vision = VISION | {"model_type": "siglip_vision_model", "projection_dim": 32}
    config = transformers.PaliGemmaConfig(
        text_config=text,
        vision_config=vision,
        image_token_index=90,
        projection_dim=32,
        hidden_size=32,
    )
    model = reloaded(transformers.PaliGemmaForConditionalGeneration, config, "paligemma")
    tokens = torch.tensor([[90, 90, 90, 90, 1, 7, 9], [90, 90, 90, 90, 1, 12, 5]])
    kinds = (torch.arange(7) > 4).long().expand(2, -1)
    output = model(input_ids=tokens, pixel_values=PICTURES, labels=tokens, token_type_ids=kinds)
    output.loss.backward()
    written = model.generate(
        input_ids=tokens, pixel_values=PICTURES, max_new_tokens=6, do_sample=False
    )
    return output.loss, output.logits, norms(model), written


for name, vision in (
    ("Qwen2VL", {"embed_dim": 32, "depth": 2, "num_heads": 4, "hidden_size": 32, "mlp_ratio": 2}),
    (
        "Qwen2_5_VL",
        {
            "hidden_size": 32,
            "depth": 2,
            "num_heads": 4,
            "intermediate_size": 48,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [1],
            "window_size": 16,
        },
    ),
):

    @step(f"{name}: loss, gradients, greedy tokens", name, vision)
    def _(name, vision):
        config = getattr(transformers, name + "Config")(
            text_config=qwen(),
            vision_config=vision | {"patch_size": 4, "temporal_patch_size": 2},
            image_token_id=90,
            video_token_id=91,
            vision_start_token_id=92,
            vision_end_token_id=93,
        )
        model = reloaded(getattr(transformers, name + "ForConditionalGeneration"), config, name)
        patches = torch.from_numpy(np.random.default_rng(0).standard_normal((16, 96))).float()
        inputs = {
            "input_ids": torch.tensor([[1, 92, 90, 90, 90, 90, 93, 7, 9]]),
            "pixel_values": patches,
            "image_grid_thw": torch.tensor([[1, 4, 4]]),
            "mm_token_type_ids": torch.tensor([[0, 0, 1, 1, 1, 1, 0, 0, 0]]),
        }
        output = model(**inputs, labels=inputs["input_ids"])
        output.loss.backward()
        return (
            output.loss,
            output.logits,
            norms(model),
            model.generate(**inputs, max_new_tokens=6, do_sample=False),
        )


@step("Idefics3: loss, greedy tokens")
def _():
    config = transformers.Idefics3Config(
        text_config=LLAMA, vision_config=VISION, image_token_id=90, scale_factor=1
    )
    model = reloaded(transformers.Idefics3ForConditionalGeneration, config, "idefics3")
    tokens = torch.tensor([[1, 90, 90, 90, 90, 7, 9], [1, 90, 90, 90, 90, 12, 5]])
    inputs = {"input_ids": tokens, "pixel_values": PICTURES[:, None]}
    output = model(**inputs, labels=tokens)
    output.loss.backward()
    return output.loss, norms(model), model.generate(**inputs, max_new_tokens=6, do_sample=False)


@step("a picture's encoder with a decoder of text: ViT and GPT-2")
def _():
    vision = transformers.ViTConfig(**VISION)
    text = transformers.GPT2Config(
        vocab_size=96, n_embd=32, n_layer=1, n_head=4, is_decoder=True, add_cross_attention=True
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(vision, text)
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    model = reloaded(transformers.VisionEncoderDecoderModel, config, "captioner")
    output = model(pixel_values=PICTURES, labels=TOKENS)
    output.loss.backward()
    return output.loss, output.logits, norms(model)


@step("ViLT: questions about pictures")
def _():
    config = transformers.ViltConfig(**TEXT | VISION, num_labels=3, max_image_length=-1)
    model = reloaded(transformers.ViltForQuestionAnswering, config, "vilt")
    labels = torch.eye(3)[:2]
    output = model(input_ids=TOKENS, pixel_values=PICTURES, labels=labels)
    output.loss.backward()
    return output.loss, output.logits, norms(model)


@step("SAM: masks from points")
def _():
    config = transformers.SamConfig(
        vision_config={
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 8,
            "output_channels": 8,
            "num_pos_feats": 4,
            "window_size": 2,
            "global_attn_indexes": [1],
            "mlp_dim": 24,
        },
        prompt_encoder_config={
            "hidden_size": 8,
            "image_size": 32,
            "patch_size": 8,
            "mask_input_channels": 4,
        },
        mask_decoder_config={
            "hidden_size": 8,
            "num_attention_heads": 2,
            "mlp_dim": 16,
            "iou_head_hidden_dim": 8,
        },
    )
    model = reloaded(transformers.SamModel, config, "sam")
    picture = torch.nn.functional.interpolate(PICTURES[:1], (32, 32))
    output = model(picture, input_points=torch.tensor([[[[8.0, 20.0]]]]))
    return output.iou_scores, output.pred_masks
