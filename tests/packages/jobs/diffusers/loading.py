"""Models of diffusion from folders: forms of files, dtypes, what is refused."""

import os

import torch
from diffusers import UNet2DModel
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


@step("from_pretrained: variant, dtype, .bin, low_cpu_mem_usage off, device_map, info of loading")
def _():
    net = UNet2DModel(**UNET).eval()
    net.save_pretrained("bin", safe_serialization=False)
    net.half().save_pretrained("half", variant="fp16")
    x = torch.randn(1, 1, 16, 16)
    loaded = [
        UNet2DModel.from_pretrained("bin", use_safetensors=False),
        UNet2DModel.from_pretrained("bin", low_cpu_mem_usage=False),
        UNet2DModel.from_pretrained("half", variant="fp16", torch_dtype=torch.float32),
        UNet2DModel.from_pretrained("bin", device_map={"": "cpu"}),
    ]
    _, info = UNet2DModel.from_pretrained("bin", output_loading_info=True)
    with torch.no_grad():
        return [each.eval()(x, 3).sample for each in loaded], info["missing_keys"]


@step("layerwise casting, group offloading, num_parameters, dtype")
def _():
    net = UNet2DModel(**UNET).eval()
    x = torch.randn(1, 1, 16, 16)
    net.enable_layerwise_casting(torch.bfloat16, torch.float32)
    with torch.no_grad():
        cast = net(x, 3).sample
    other = UNet2DModel(**UNET).eval()
    other.enable_group_offload(torch.device("cpu"), torch.device("cpu"), offload_type="leaf_level")
    with torch.no_grad():
        return cast, other(x, 3).sample, net.num_parameters(), str(net.dtype)


@step("refused: a checkpoint of another width", refused=True)
def _():
    UNet2DModel(**UNET).save_pretrained("narrow")
    UNet2DModel.from_pretrained("narrow", block_out_channels=(16, 32))


@step("refused: a folder without weights", refused=True)
def _():
    UNet2DModel(**UNET).save_config("config")
    UNet2DModel.from_pretrained("./config")


@step("refused: a missing shard", refused=True)
def _():
    UNet2DModel(**UNET).save_pretrained("shards", max_shard_size="20KB")
    first = min(name for name in os.listdir("shards") if name.endswith(".safetensors"))
    os.remove(f"shards/{first}")
    UNet2DModel.from_pretrained("shards")


@step("refused: another model's block", refused=True)
def _():
    UNet2DModel(**{**UNET, "down_block_types": ("DownBlock2D", "NoBlock2D")})


@step("refused: channels that are not the model's", refused=True)
def _():
    UNet2DModel(**UNET)(torch.randn(1, 3, 16, 16), 1)
