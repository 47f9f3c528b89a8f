"""Models of diffusion: loss, gradients, saved and loaded; training and sampling; averages."""

import diffusers
import torch
from diffusers import (
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel, compute_snr
from steps import step

UNET = {
    "sample_size": 16,
    "in_channels": 1,
    "out_channels": 1,
    "layers_per_block": 1,
    "block_out_channels": (8, 16),
    "norm_num_groups": 4,
    "attention_head_dim": 8,
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
}
CONDITIONED = {
    "sample_size": 16,
    "in_channels": 4,
    "out_channels": 4,
    "layers_per_block": 1,
    "block_out_channels": (16, 32),
    "norm_num_groups": 8,
    "attention_head_dim": 4,
    "cross_attention_dim": 24,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}


@step("DDPM: trained with a schedule and averages, sampled, saved, loaded")
def _():
    net, scheduler = UNet2DModel(**UNET), DDPMScheduler(50)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    rates = get_scheduler("cosine", optimizer, num_warmup_steps=2, num_training_steps=6)
    ema = EMAModel(
        net.parameters(),
        decay=0.9,
        use_ema_warmup=True,
        model_cls=UNet2DModel,
        model_config=net.config,
    )
    losses, images = [], torch.rand(4, 1, 16, 16) * 2 - 1
    for _ in range(6):
        noise, t = torch.randn_like(images), torch.randint(0, 50, (4,))
        noisy = scheduler.add_noise(images, noise, t)
        error = (net(noisy, t).sample - noise).square().mean((1, 2, 3))
        loss = (error * compute_snr(scheduler, t).clamp(max=5)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        rates.step()
        ema.step(net.parameters())
        losses.append(loss.item())
    ema.store(net.parameters())
    ema.copy_to(net.parameters())
    averaged = net.conv_out.weight.clone()
    ema.restore(net.parameters())
    ema.save_pretrained("ema")
    loaded = EMAModel.from_pretrained("ema", UNet2DModel)
    pipeline = DDPMPipeline(net, scheduler)
    pipeline.save_pretrained("ddpm")
    again = DDPMPipeline.from_pretrained("ddpm")
    sampled = [
        p(
            1, generator=torch.Generator().manual_seed(1), num_inference_steps=4, output_type="np"
        ).images
        for p in (pipeline, again)
    ]
    return losses, averaged, loaded.shadow_params[-1], sampled, again.unet.conv_out.weight


@step("DDIM: a pipeline, its inverse, eta")
def _():
    net = UNet2DModel(**UNET)
    pipeline = DDIMPipeline(net, DDIMScheduler(50))
    found = [
        pipeline(
            2,
            generator=torch.Generator().manual_seed(0),
            eta=eta,
            num_inference_steps=3,
            output_type="np",
        ).images
        for eta in (0.0, 0.7)
    ]
    inverse = diffusers.DDIMInverseScheduler(50)
    inverse.set_timesteps(4)
    x = torch.rand(1, 1, 16, 16)
    with torch.no_grad():
        for t in inverse.timesteps:
            x = inverse.step(net(x, t).sample, t, x).prev_sample
    return found, x


@step("UNet2DConditionModel: output, gradients, checkpointing, slicing, FreeU, fused")
def _():
    net = UNet2DConditionModel(**CONDITIONED)
    x, text = torch.randn(2, 4, 16, 16), torch.randn(2, 7, 24, requires_grad=True)
    out = net(x, torch.tensor([1, 7]), text).sample
    out.square().mean().backward()
    found = [out, text.grad, net.conv_in.weight.grad]
    net.enable_gradient_checkpointing()
    net.zero_grad()
    net.train()(x, 3, text).sample.square().mean().backward()
    found.append(net.conv_in.weight.grad)
    net.eval()
    with torch.no_grad():
        net.set_attention_slice("auto")
        found.append(net(x, 3, text).sample)
        net.set_default_attn_processor()
        net.enable_freeu(0.9, 0.2, 1.2, 1.4)
        found.append(net(x, 3, text).sample)
        net.disable_freeu()
        net.fuse_qkv_projections()
        found.append(net(x, 3, text).sample)
        net.unfuse_qkv_projections()
    return found


@step("attention processors: by hand, AttnProcessor, AttnProcessor2_0, Sliced, Custom")
def _():
    from diffusers.models import attention_processor as kinds

    net = UNet2DConditionModel(**CONDITIONED).eval()
    x, text = torch.randn(1, 4, 16, 16), torch.randn(1, 7, 24)

    class Mine:
        def __call__(
            self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, **kwargs
        ):
            source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
            query = attn.head_to_batch_dim(attn.to_q(hidden_states))
            key = attn.head_to_batch_dim(attn.to_k(source))
            value = attn.head_to_batch_dim(attn.to_v(source))
            out = torch.bmm(attn.get_attention_scores(query, key, attention_mask), value)
            return attn.to_out[0](attn.batch_to_head_dim(out))

    found = []
    with torch.no_grad():
        for each in (
            kinds.AttnProcessor(),
            kinds.AttnProcessor2_0(),
            kinds.SlicedAttnProcessor(2),
            Mine(),
        ):
            net.set_attn_processor(each)
            found.append(net(x, 5, text).sample)
    return found, sorted(net.attn_processors)


@step("UNet: class labels, added conditions, time as a vector, masks")
def _():
    net = UNet2DConditionModel(
        **CONDITIONED, num_class_embeds=5, time_embedding_act_fn="silu"
    ).eval()
    x, text = torch.randn(2, 4, 16, 16), torch.randn(2, 7, 24)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [1] * 7])
    with torch.no_grad():
        return net(
            x, 5, text, class_labels=torch.tensor([1, 4]), encoder_attention_mask=mask
        ).sample


AUTOENCODER = {
    "block_out_channels": (8, 16),
    "norm_num_groups": 4,
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}


@step("AutoencoderKL: loss, gradients, tiling, slicing, saved and loaded")
def _():
    net = diffusers.AutoencoderKL(latent_channels=4, sample_size=32, **AUTOENCODER)
    x = torch.rand(2, 3, 32, 32) * 2 - 1
    latent = net.encode(x).latent_dist
    decoded = net.decode(latent.sample(torch.Generator().manual_seed(0))).sample
    loss = (decoded - x).square().mean() + 1e-3 * latent.kl().mean()
    loss.backward()
    net.save_pretrained("vae")
    again = diffusers.AutoencoderKL.from_pretrained("vae", torch_dtype=torch.float32)
    with torch.no_grad():
        again.enable_slicing()
        sliced = again(x).sample
        again.disable_slicing()
        again.enable_tiling()
        big = torch.rand(1, 3, 64, 64)
        tiled = again(big).sample
    return loss, latent.mode(), net.encoder.conv_in.weight.grad, sliced, tiled


AUTOENCODERS = {
    "VQModel": {"latent_channels": 3, "num_vq_embeddings": 16, **AUTOENCODER},
    "AutoencoderTiny": {
        "encoder_block_out_channels": (8, 8),
        "decoder_block_out_channels": (8, 8),
        "num_encoder_blocks": (1, 1),
        "num_decoder_blocks": (1, 1),
    },
    "AsymmetricAutoencoderKL": {
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
        "down_block_out_channels": (8, 16),
        "up_block_out_channels": (8, 16),
        "norm_num_groups": 4,
    },
    "AutoencoderDC": {
        "latent_channels": 4,
        "encoder_block_out_channels": (8, 16),
        "decoder_block_out_channels": (8, 16),
        "encoder_layers_per_block": (1, 1),
        "decoder_layers_per_block": (1, 1),
        "encoder_block_types": ("ResBlock", "EfficientViTBlock"),
        "decoder_block_types": ("ResBlock", "EfficientViTBlock"),
        "encoder_qkv_multiscales": ((), (5,)),
        "decoder_qkv_multiscales": ((), (5,)),
        "attention_head_dim": 8,
    },
}
for name, options in AUTOENCODERS.items():

    @step(f"{name}: output, gradients", name, options)
    def _(name, options):
        net = getattr(diffusers, name)(**options)
        out = net(torch.rand(1, 3, 32, 32)).sample
        out.square().mean().backward()
        return out, next(p.grad for p in net.parameters() if p.grad is not None)


HEADS = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2}
TRANSFORMERS = {
    "DiTTransformer2DModel": (
        {
            **HEADS,
            "in_channels": 4,
            "out_channels": 8,
            "sample_size": 8,
            "patch_size": 2,
            "num_embeds_ada_norm": 10,
        },
        lambda: {
            "hidden_states": torch.randn(2, 4, 8, 8),
            "timestep": torch.tensor([1, 5]),
            "class_labels": torch.tensor([3, 4]),
        },
    ),
    "PixArtTransformer2DModel": (
        {
            **HEADS,
            "in_channels": 4,
            "out_channels": 8,
            "sample_size": 8,
            "cross_attention_dim": 16,
            "caption_channels": 12,
            "use_additional_conditions": False,
        },
        lambda: {
            "hidden_states": torch.randn(2, 4, 8, 8),
            "encoder_hidden_states": torch.randn(2, 5, 12),
            "timestep": torch.tensor([1, 5]),
            "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
        },
    ),
    "SD3Transformer2DModel": (
        {
            **HEADS,
            "sample_size": 8,
            "patch_size": 2,
            "in_channels": 4,
            "out_channels": 4,
            "joint_attention_dim": 12,
            "caption_projection_dim": 16,
            "pooled_projection_dim": 10,
            "pos_embed_max_size": 8,
        },
        lambda: {
            "hidden_states": torch.randn(2, 4, 8, 8),
            "encoder_hidden_states": torch.randn(2, 5, 12),
            "pooled_projections": torch.randn(2, 10),
            "timestep": torch.tensor([1, 5]),
        },
    ),
    "FluxTransformer2DModel": (
        {
            **HEADS,
            "num_single_layers": 1,
            "in_channels": 8,
            "patch_size": 1,
            "joint_attention_dim": 12,
            "pooled_projection_dim": 10,
            "axes_dims_rope": (2, 2, 4),
            "guidance_embeds": True,
        },
        lambda: {
            "hidden_states": torch.randn(2, 16, 8),
            "encoder_hidden_states": torch.randn(2, 5, 12),
            "pooled_projections": torch.randn(2, 10),
            "timestep": torch.tensor([0.1, 0.5]),
            "guidance": torch.tensor([1.0, 3.5]),
            "img_ids": torch.stack(
                torch.meshgrid(torch.zeros(1), torch.arange(4.0), torch.arange(4.0), indexing="ij"),
                -1,
            ).reshape(16, 3),
            "txt_ids": torch.zeros(5, 3),
        },
    ),
    "AuraFlowTransformer2DModel": (
        {
            "sample_size": 8,
            "patch_size": 2,
            "in_channels": 4,
            "num_mmdit_layers": 1,
            "num_single_dit_layers": 1,
            "attention_head_dim": 8,
            "num_attention_heads": 2,
            "caption_projection_dim": 16,
            "joint_attention_dim": 12,
            "out_channels": 4,
            "pos_embed_max_size": 16,
        },
        lambda: {
            "hidden_states": torch.randn(2, 4, 8, 8),
            "encoder_hidden_states": torch.randn(2, 5, 12),
            "timestep": torch.tensor([0.1, 0.5]),
        },
    ),
    "SanaTransformer2DModel": (
        {
            **HEADS,
            "in_channels": 4,
            "out_channels": 4,
            "num_cross_attention_heads": 2,
            "cross_attention_head_dim": 8,
            "cross_attention_dim": 16,
            "caption_channels": 12,
            "sample_size": 8,
        },
        lambda: {
            "hidden_states": torch.randn(2, 4, 8, 8),
            "encoder_hidden_states": torch.randn(2, 5, 12),
            "timestep": torch.tensor([1, 5]),
        },
    ),
    "CogVideoXTransformer3DModel": (
        {
            **HEADS,
            "in_channels": 4,
            "out_channels": 4,
            "time_embed_dim": 8,
            "text_embed_dim": 12,
            "sample_width": 8,
            "sample_height": 8,
            "sample_frames": 5,
            "max_text_seq_length": 5,
        },
        lambda: {
            "hidden_states": torch.randn(1, 2, 4, 8, 8),
            "encoder_hidden_states": torch.randn(1, 5, 12),
            "timestep": torch.tensor([5]),
        },
    ),
    "WanTransformer3DModel": (
        {
            "patch_size": (1, 2, 2),
            "num_attention_heads": 2,
            "attention_head_dim": 12,
            "in_channels": 4,
            "out_channels": 4,
            "text_dim": 12,
            "freq_dim": 16,
            "ffn_dim": 24,
            "num_layers": 2,
            "rope_max_seq_len": 32,
        },
        lambda: {
            "hidden_states": torch.randn(1, 4, 2, 8, 8),
            "encoder_hidden_states": torch.randn(1, 5, 12),
            "timestep": torch.tensor([5]),
        },
    ),
    "UNetSpatioTemporalConditionModel": (
        {
            "sample_size": 8,
            "in_channels": 8,
            "out_channels": 4,
            "block_out_channels": (32, 64),
            "layers_per_block": 1,
            "down_block_types": ("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
            "up_block_types": ("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            "cross_attention_dim": 12,
            "num_attention_heads": (2, 4),
            "projection_class_embeddings_input_dim": 24,
            "addition_time_embed_dim": 8,
        },
        lambda: {
            "sample": torch.randn(1, 2, 8, 8, 8),
            "timestep": 5,
            "encoder_hidden_states": torch.randn(1, 1, 12),
            "added_time_ids": torch.tensor([[6.0, 127.0, 0.02]]),
        },
    ),
    "UNet3DConditionModel": (
        {
            "block_out_channels": (8, 16),
            "norm_num_groups": 4,
            "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
            "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
            "cross_attention_dim": 12,
            "attention_head_dim": 4,
            "layers_per_block": 1,
        },
        lambda: {
            "sample": torch.randn(1, 4, 3, 8, 8),
            "timestep": 5,
            "encoder_hidden_states": torch.randn(1, 5, 12),
        },
    ),
    "UNet1DModel": (
        {
            "sample_size": 32,
            "in_channels": 4,
            "out_channels": 4,
            "block_out_channels": (8, 16),
            "down_block_types": ("DownBlock1DNoSkip", "AttnDownBlock1D"),
            "up_block_types": ("AttnUpBlock1D", "UpBlock1DNoSkip"),
            "extra_in_channels": 16,
        },
        lambda: {"sample": torch.randn(2, 4, 32), "timestep": 5},
    ),
    "StableCascadeUNet": (
        {
            "in_channels": 4,
            "out_channels": 4,
            "timestep_ratio_embedding_dim": 8,
            "patch_size": 1,
            "conditioning_dim": 16,
            "block_out_channels": (16, 16),
            "num_attention_heads": (0, 2),
            "down_num_layers_per_block": (1, 1),
            "up_num_layers_per_block": (1, 1),
            "down_blocks_repeat_mappers": (1, 1),
            "up_blocks_repeat_mappers": (1, 1),
            "block_types_per_layer": (("SDCascadeResBlock", "SDCascadeTimestepBlock"),) * 2,
            "clip_text_pooled_in_channels": 12,
            "clip_seq": 2,
            "kernel_size": 3,
        },
        lambda: {
            "sample": torch.randn(1, 4, 8, 8),
            "timestep_ratio": torch.tensor([0.3]),
            "clip_text_pooled": torch.randn(1, 1, 12),
        },
    ),
    "PriorTransformer": (
        {**HEADS, "embedding_dim": 12, "num_embeddings": 5, "additional_embeddings": 4},
        lambda: {
            "hidden_states": torch.randn(2, 12),
            "timestep": 5,
            "proj_embedding": torch.randn(2, 12),
            "encoder_hidden_states": torch.randn(2, 5, 12),
        },
    ),
}
for name, (options, inputs) in TRANSFORMERS.items():

    @step(f"{name}: output, gradients, saved and loaded", name, options, inputs)
    def _(name, options, inputs):
        kind = getattr(diffusers, name)
        net = kind(**options)
        with torch.no_grad():  # layers that begin as zeros would hide the rest
            for p in net.parameters():
                p.add_(0.05 * torch.randn_like(p))
        given = inputs()
        out = net(**given, return_dict=False)[0]
        out.square().mean().backward()
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        net.eval().save_pretrained(name, max_shard_size="20KB")
        again = kind.from_pretrained(name).eval()
        with torch.no_grad():
            return out, grads[0], grads[-1], again(**given, return_dict=False)[0]


@step("refused: text of another width", refused=True)
def _():
    UNet2DConditionModel(**CONDITIONED)(torch.randn(1, 4, 16, 16), 1, torch.randn(1, 7, 20))
