"""Whole pipelines: text to image and its kin, saved, loaded, with adapters, offloaded."""

import json
from pathlib import Path

import diffusers
import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
from PIL import Image
from steps import step
from transformers import (
    CLIPImageProcessor,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
    T5Config,
    T5EncoderModel,
)

WORDS = (
    "<|startoftext|> <|endoftext|> a</w> red</w> cat</w> on</w> the</w> moon</w> dog</w>".split()
)


def tokenizer():
    letters = [chr(c) for c in range(97, 123)] + [chr(c) + "</w>" for c in range(97, 123)]
    merges = [
        "r e",
        "re d</w>",
        "c a",
        "ca t</w>",
        "o n</w>",
        "m o",
        "mo on</w>",
        "d o",
        "do g</w>",
        "t h",
        "th e</w>",
    ]
    extra = ["re", "ca", "mo", "do", "th"]
    vocabulary = dict.fromkeys([*letters, *extra, *WORDS[2:], *WORDS[:2]])
    folder = Path("tokenizer")
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
    return CLIPTokenizer("tokenizer/vocab.json", "tokenizer/merges.txt", model_max_length=12)


TOKENS = len(tokenizer())
LAST = TOKENS - 1


def text_model(kind=CLIPTextModel, width=16):
    config = CLIPTextConfig(
        vocab_size=TOKENS,
        hidden_size=width,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        max_position_embeddings=12,
        projection_dim=16,
        eos_token_id=LAST,
        bos_token_id=LAST - 1,
        pad_token_id=LAST,
    )
    return kind(config).eval()


def autoencoder(**options):
    return AutoencoderKL(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        sample_size=32,
        **{"latent_channels": 4} | options,
    ).eval()


BLOCKS = {
    "sample_size": 16,
    "layers_per_block": 1,
    "block_out_channels": (16, 32),
    "norm_num_groups": 8,
    "attention_head_dim": 4,
    "cross_attention_dim": 16,
}


def unet(**options):
    return UNet2DConditionModel(
        **{"in_channels": 4, "out_channels": 4} | BLOCKS | options,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ).eval()


def scheduler():
    return DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        set_alpha_to_one=False,
    )


def parts(**options):
    torch.manual_seed(0)
    found = {
        "vae": autoencoder(),
        "text_encoder": text_model(),
        "tokenizer": tokenizer(),
        "unet": unet(),
        "scheduler": scheduler(),
        "safety_checker": None,
        "feature_extractor": None,
        "requires_safety_checker": False,
    }
    return found | options


def quiet(pipeline):
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def stable(**options):
    return quiet(diffusers.StableDiffusionPipeline(**parts(**options)))


def drawn(pipeline, prompt="a red cat on the moon", **options):
    default = {
        "generator": torch.Generator().manual_seed(0),
        "num_inference_steps": 2,
        "output_type": "np",
    }
    return pipeline(prompt, **default | options).images


SIZE = {"height": 32, "width": 32}
PICTURE = Image.fromarray((np.arange(32 * 32 * 3).reshape(32, 32, 3) * 7 % 255).astype(np.uint8))
MASK = Image.fromarray(np.pad(np.full((16, 16), 255, np.uint8), 8))


@step("text to image: guidance, negative prompt, two pictures, latents, pil")
def _():
    pipeline = stable()
    return (
        drawn(pipeline, **SIZE),
        drawn(pipeline, negative_prompt="dog", guidance_scale=3.0, num_images_per_prompt=2, **SIZE),
        drawn(pipeline, ["a dog", "the moon"], guidance_scale=1.0, **SIZE),
        drawn(pipeline, output_type="latent", eta=0.5, guidance_rescale=0.7, **SIZE),
        np.asarray(drawn(pipeline, output_type="pil", **SIZE)[0]).astype(float).mean(),
    )


@step(
    "saved and loaded: whole, in float16, with another part, by DiffusionPipeline and AutoPipeline"
)
def _():
    pipeline = stable()
    pipeline.save_pretrained("stable")
    found = [drawn(pipeline, **SIZE)]
    for kind in (
        diffusers.StableDiffusionPipeline,
        diffusers.DiffusionPipeline,
        diffusers.AutoPipelineForText2Image,
    ):
        found.append(drawn(quiet(kind.from_pretrained("stable", safety_checker=None)), **SIZE))
    other = unet()
    found.append(
        drawn(quiet(diffusers.DiffusionPipeline.from_pretrained("stable", unet=other)), **SIZE)
    )
    half = diffusers.DiffusionPipeline.from_pretrained("stable", torch_dtype=torch.bfloat16)
    files = sorted(str(each) for each in Path("stable").rglob("*.safetensors"))
    return found, sorted(half.components), str(half.unet.dtype), files


SCHEDULERS = [
    "DPMSolverMultistepScheduler",
    "EulerDiscreteScheduler",
    "EulerAncestralDiscreteScheduler",
    "PNDMScheduler",
    "LMSDiscreteScheduler",
    "UniPCMultistepScheduler",
    "LCMScheduler",
]


@step("other schedulers in the pipeline")
def _():
    pipeline, found = stable(), {}
    for name in SCHEDULERS:
        pipeline.scheduler = getattr(diffusers, name).from_config(pipeline.scheduler.config)
        found[name] = drawn(pipeline, num_inference_steps=4, **SIZE)
    return found


@step("image to image, inpainting, from the same parts")
def _():
    pipeline = stable()
    image = quiet(
        diffusers.StableDiffusionImg2ImgPipeline(
            **pipeline.components, requires_safety_checker=False
        )
    )
    paint = quiet(diffusers.AutoPipelineForInpainting.from_pipe(pipeline))
    options = {"image": PICTURE, "strength": 0.8, "num_inference_steps": 3}
    return drawn(image, **options), drawn(paint, mask_image=MASK, **options, **SIZE)


@step("inpainting with a net of nine channels; pix2pix; upscaling; variation of depth")
def _():
    nine = quiet(diffusers.StableDiffusionInpaintPipeline(**parts(unet=unet(in_channels=9))))
    pix = quiet(diffusers.StableDiffusionInstructPix2PixPipeline(**parts(unet=unet(in_channels=8))))
    return (
        drawn(nine, image=PICTURE, mask_image=MASK, **SIZE),
        drawn(pix, image=PICTURE, image_guidance_scale=1.2),
    )


@step("callbacks, embeddings in place of text, interrupted")
def _():
    pipeline, seen = stable(), []

    def callback(pipe, count, t, kwargs):
        seen.append((count, int(t), float(kwargs["latents"].norm())))
        pipe._interrupt = count == 1
        return kwargs

    first = drawn(pipeline, num_inference_steps=4, callback_on_step_end=callback, **SIZE)
    positive, negative = pipeline.encode_prompt("a dog", "cpu", 1, True, "the moon")
    given = drawn(pipeline, None, prompt_embeds=positive, negative_prompt_embeds=negative, **SIZE)
    return seen, first, positive, negative, given


@step("LoRA: added, trained, saved, loaded, scaled, fused, unfused, unloaded")
def _():
    from diffusers.utils import convert_state_dict_to_diffusers
    from peft import LoraConfig
    from peft.utils import get_peft_model_state_dict

    pipeline = stable()
    plain = drawn(pipeline, **SIZE)
    config = LoraConfig(
        r=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]
    )
    pipeline.unet.requires_grad_(False)
    pipeline.unet.add_adapter(config)
    trained = [p for p in pipeline.unet.parameters() if p.requires_grad]
    optimizer, losses = torch.optim.AdamW(trained, lr=5e-2), []
    x, text = torch.randn(2, 4, 16, 16), torch.randn(2, 12, 16)
    for _ in range(3):
        loss = (pipeline.unet(x, 10, text).sample - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = convert_state_dict_to_diffusers(get_peft_model_state_dict(pipeline.unet))
    diffusers.StableDiffusionPipeline.save_lora_weights("lora", unet_lora_layers=state)
    found = [drawn(pipeline, **SIZE)]
    again = stable()
    again.load_lora_weights("lora", adapter_name="one")
    found.append(drawn(again, **SIZE))
    again.set_adapters(["one"], [0.5])
    found.append(drawn(again, **SIZE))
    found.append(drawn(again, cross_attention_kwargs={"scale": 0.5}, **SIZE))
    again.disable_lora()
    found.append(drawn(again, **SIZE))
    again.enable_lora()
    again.load_lora_weights("lora", adapter_name="two")
    again.set_adapters(["one", "two"], [0.3, 0.9])
    found.append(drawn(again, **SIZE))
    again.fuse_lora(lora_scale=0.7)
    found.append(drawn(again, **SIZE))
    again.unfuse_lora()
    again.delete_adapters("two")
    listed = again.get_list_adapters()
    again.unload_lora_weights()
    return plain, losses, found, drawn(again, **SIZE), listed


@step("textual inversion: a word trained, saved, loaded")
def _():
    pipeline = stable()
    words, encoder = pipeline.tokenizer, pipeline.text_encoder
    words.add_tokens("<mine>")
    encoder.resize_token_embeddings(len(words), mean_resizing=False)
    number = words.convert_tokens_to_ids("<mine>")
    table = encoder.get_input_embeddings()
    optimizer = torch.optim.AdamW(table.parameters(), lr=1e-2)
    ids = words("a <mine> on the moon", padding="max_length", return_tensors="pt").input_ids
    losses, kept = [], table.weight.detach().clone()
    x = torch.randn(1, 4, 16, 16)
    for _ in range(3):
        loss = (pipeline.unet(x, 10, encoder(ids)[0]).sample - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        others = torch.arange(len(words)) != number
        with torch.no_grad():
            table.weight[others] = kept[others]
        losses.append(loss.item())
    torch.save({"<mine>": table.weight[number].detach()}, "mine.bin")
    again = stable()
    again.load_textual_inversion("mine.bin", token="<mine>")
    return losses, drawn(again, "a <mine> on the moon", **SIZE), len(again.tokenizer)


@step("ControlNet: text to image, image to image, several, trained")
def _():
    base = unet()
    with torch.no_grad():
        for p in base.parameters():
            p.add_(0.01)
    control = diffusers.ControlNetModel.from_unet(
        base, conditioning_channels=3, conditioning_embedding_out_channels=(8, 8)
    )
    with torch.no_grad():
        for p in control.parameters():
            p.add_(0.02 * torch.randn_like(p))
    options = parts(unet=base)
    pipeline = quiet(diffusers.StableDiffusionControlNetPipeline(**options, controlnet=control))
    two = quiet(
        diffusers.StableDiffusionControlNetPipeline(**options, controlnet=[control, control])
    )
    first = drawn(pipeline, image=PICTURE, controlnet_conditioning_scale=0.7, guess_mode=True)
    both = drawn(two, image=[PICTURE, PICTURE], control_guidance_end=[0.5, 1.0])
    x, text = torch.randn(1, 4, 16, 16), torch.randn(1, 12, 16)
    down, middle = control(x, 10, text, torch.rand(1, 3, 32, 32), return_dict=False)
    out = base(
        x, 10, text, down_block_additional_residuals=down, mid_block_additional_residual=middle
    ).sample
    out.square().mean().backward()
    return first, both, control.controlnet_cond_embedding.conv_in.weight.grad


@step("T2I adapter; IP-Adapter")
def _():
    adapter = diffusers.T2IAdapter(3, (16, 32), 1, 2, "full_adapter").eval()
    pipeline = quiet(diffusers.StableDiffusionAdapterPipeline(**parts(), adapter=adapter))
    return drawn(pipeline, image=PICTURE, adapter_conditioning_scale=0.8, **SIZE)


@step("image variation by a CLIP of pictures")
def _():
    config = CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        projection_dim=16,
    )
    options = {k: v for k, v in parts().items() if k not in ("text_encoder", "tokenizer")}
    options["feature_extractor"] = CLIPImageProcessor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    )
    torch.manual_seed(1)
    encoder = CLIPVisionModelWithProjection(config).eval()
    pipeline = quiet(
        diffusers.StableDiffusionImageVariationPipeline(**options, image_encoder=encoder)
    )
    return drawn(pipeline, PICTURE, **SIZE)


def sdxl(kind=diffusers.StableDiffusionXLPipeline, **options):
    torch.manual_seed(0)
    found = {
        "vae": autoencoder(),
        "text_encoder": text_model(),
        "text_encoder_2": text_model(CLIPTextModelWithProjection),
        "tokenizer": tokenizer(),
        "tokenizer_2": tokenizer(),
        "unet": unet(
            cross_attention_dim=32,
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=6 * 8 + 16,
            use_linear_projection=True,
        ),
        "scheduler": diffusers.EulerDiscreteScheduler(
            beta_schedule="scaled_linear", steps_offset=1
        ),
    }
    return quiet(kind(**found | options))


@step("SDXL: text to image, image to image, inpainting, saved and loaded")
def _():
    pipeline = sdxl()
    found = [
        drawn(pipeline, **SIZE),
        drawn(
            pipeline,
            prompt_2="the moon",
            negative_prompt="dog",
            denoising_end=0.8,
            original_size=(64, 64),
            **SIZE,
        ),
    ]
    image = quiet(diffusers.AutoPipelineForImage2Image.from_pipe(pipeline))
    found.append(drawn(image, image=PICTURE, strength=0.9, num_inference_steps=3))
    paint = quiet(diffusers.AutoPipelineForInpainting.from_pipe(pipeline))
    found.append(
        drawn(paint, image=PICTURE, mask_image=MASK, strength=0.9, num_inference_steps=3, **SIZE)
    )
    pipeline.save_pretrained("sdxl")
    again = quiet(diffusers.DiffusionPipeline.from_pretrained("sdxl"))
    return found, drawn(again, **SIZE)


def t5(width=16):
    config = T5Config(vocab_size=TOKENS, d_model=width, d_kv=8, d_ff=24, num_layers=2, num_heads=2)
    return T5EncoderModel(config).eval()


@step("SD3-shaped: text to image, saved and loaded, an adapter")
def _():
    from peft import LoraConfig

    torch.manual_seed(0)
    transformer = diffusers.SD3Transformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=32,
        caption_projection_dim=16,
        pooled_projection_dim=32,
        pos_embed_max_size=16,
    ).eval()
    pipeline = quiet(
        diffusers.StableDiffusion3Pipeline(
            transformer,
            diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
            autoencoder(shift_factor=0.06),
            text_model(CLIPTextModelWithProjection),
            tokenizer(),
            text_model(CLIPTextModelWithProjection),
            tokenizer(),
            t5(32),
            tokenizer(),
        )
    )
    options = {"max_sequence_length": 12, **SIZE}
    found = [drawn(pipeline, negative_prompt="dog", **options)]
    pipeline.save_pretrained("sd3")
    again = quiet(diffusers.StableDiffusion3Pipeline.from_pretrained("sd3"))
    found.append(drawn(again, **options))
    again.transformer.add_adapter(
        LoraConfig(r=2, init_lora_weights=False, target_modules=["to_q", "to_v"])
    )
    return found, drawn(again, **options)


@step("Flux-shaped: text to image, image to image, an adapter loaded and fused")
def _():
    from peft import LoraConfig
    from peft.utils import get_peft_model_state_dict

    torch.manual_seed(0)
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=16,
        axes_dims_rope=(4, 4, 8),
    ).eval()
    pipeline = quiet(
        diffusers.FluxPipeline(
            scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
            vae=autoencoder(shift_factor=0.1, use_quant_conv=False, use_post_quant_conv=False),
            text_encoder=text_model(),
            tokenizer=tokenizer(),
            text_encoder_2=t5(32),
            tokenizer_2=tokenizer(),
            transformer=transformer,
        )
    )
    options = {"max_sequence_length": 12}
    found = [drawn(pipeline, guidance_scale=0.0, **SIZE, **options)]
    image = quiet(
        diffusers.FluxImg2ImgPipeline(
            **{
                k: v
                for k, v in pipeline.components.items()
                if k not in ("image_encoder", "feature_extractor")
            }
        )
    )
    found.append(
        drawn(image, image=PICTURE, strength=0.9, num_inference_steps=3, **SIZE, **options)
    )
    transformer.add_adapter(
        LoraConfig(r=2, init_lora_weights=False, target_modules=["to_q", "to_k"])
    )
    state = get_peft_model_state_dict(transformer)
    diffusers.FluxPipeline.save_lora_weights("flux", transformer_lora_layers=state)
    transformer.delete_adapters("default")
    pipeline.load_lora_weights("flux")
    found.append(drawn(pipeline, **SIZE, **options))
    pipeline.fuse_lora()
    found.append(drawn(pipeline, **SIZE, **options))
    pipeline.unload_lora_weights()
    return found


@step("PixArt and DiT pipelines")
def _():
    torch.manual_seed(0)
    pix = diffusers.PixArtTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=2,
        in_channels=4,
        out_channels=8,
        sample_size=16,
        cross_attention_dim=16,
        caption_channels=16,
        use_additional_conditions=False,
    ).eval()
    pixart = quiet(
        diffusers.PixArtAlphaPipeline(
            tokenizer(), t5(), autoencoder(), pix, diffusers.DPMSolverMultistepScheduler()
        )
    )
    dit = diffusers.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=2,
        in_channels=4,
        out_channels=8,
        sample_size=16,
        num_embeds_ada_norm=1000,
    ).eval()
    classes = quiet(diffusers.DiTPipeline(dit, autoencoder(), DDIMScheduler()))
    one = drawn(
        pixart, use_resolution_binning=False, clean_caption=False, max_sequence_length=12, **SIZE
    )
    return one, drawn(classes, [1, 3])


@step("Stable Video Diffusion-shaped")
def _():
    torch.manual_seed(0)
    net = diffusers.UNetSpatioTemporalConditionModel(
        sample_size=16,
        in_channels=8,
        out_channels=4,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
        up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
        cross_attention_dim=16,
        num_attention_heads=(2, 4),
        projection_class_embeddings_input_dim=24,
        addition_time_embed_dim=8,
        num_frames=2,
    ).eval()
    vae = diffusers.AutoencoderKLTemporalDecoder(
        block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2, sample_size=32
    ).eval()
    config = CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=224,
        patch_size=56,
        projection_dim=16,
    )
    encoder = CLIPVisionModelWithProjection(config).eval()
    euler = diffusers.EulerDiscreteScheduler(
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        use_karras_sigmas=True,
        timestep_type="continuous",
        sigma_min=0.002,
        sigma_max=700.0,
    )
    pipeline = quiet(
        diffusers.StableVideoDiffusionPipeline(
            vae,
            encoder,
            net,
            euler,
            CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        )
    )
    return pipeline(
        PICTURE,
        num_frames=2,
        num_inference_steps=2,
        output_type="np",
        generator=torch.Generator().manual_seed(0),
        **SIZE,
    ).frames


@step("offloading, slicing, tiling, placement, compiled, on the CPU")
def _():
    found = []
    pipeline = stable()
    pipeline.enable_attention_slicing()
    pipeline.vae.enable_slicing()
    pipeline.vae.enable_tiling()
    found.append(drawn(pipeline, num_images_per_prompt=2, **SIZE))
    pipeline = stable()
    pipeline.enable_sequential_cpu_offload(device="cpu")
    found.append(drawn(pipeline, **SIZE))
    pipeline = stable()
    pipeline.enable_model_cpu_offload(device="cpu")
    found.append(drawn(pipeline, **SIZE))
    pipeline.reset_device_map()
    pipeline = stable().to("cpu", torch.float64)
    found.append(drawn(pipeline, **SIZE))
    pipeline = stable()
    pipeline.unet.to(memory_format=torch.channels_last)
    pipeline.unet = torch.compile(pipeline.unet, backend="eager")
    found.append(drawn(pipeline, **SIZE))
    return found


@step(
    "a checkpoint of the original layout: from_single_file refused without a config", refused=True
)
def _():
    torch.save({"model.diffusion_model.nothing": torch.ones(1)}, "single.ckpt")
    diffusers.StableDiffusionPipeline.from_single_file("single.ckpt", local_files_only=True)


@step("refused: a height that 8 does not divide", refused=True)
def _():
    drawn(stable(), height=33, width=32)


@step("refused: both a prompt and embeddings", refused=True)
def _():
    drawn(stable(), prompt_embeds=torch.ones(1, 12, 16), **SIZE)


@step("refused: a pipeline folder without a part", refused=True)
def _():
    import shutil

    stable().save_pretrained("missing")
    shutil.rmtree("missing/unet")
    diffusers.DiffusionPipeline.from_pretrained("./missing")


@step("refused: LoRA weights of another width", refused=True)
def _():
    torch.save(
        {
            "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_q.lora_A.weight": torch.ones(
                2, 5
            ),
            "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_q.lora_B.weight": torch.ones(
                5, 2
            ),
        },
        "wrong.bin",
    )
    stable().load_lora_weights("wrong.bin")


@step("refused: a list of generators of another length", refused=True)
def _():
    drawn(stable(), generator=[torch.Generator(), torch.Generator()], **SIZE)


@step("refused: a GPU that is not there", refused=True)
def _():
    stable().to("cuda")
