"""Quantized layers and functions on the CPU."""

import bitsandbytes as bnb
import bitsandbytes.functional as bf
import torch
from steps import step

for quant_type in ("nf4", "fp4"):

    @step(f"quantize_4bit and dequantize_4bit: {quant_type}", quant_type)
    def _(quant_type):
        x, found = torch.randn(64, 128), []
        for blocksize in (64, 256):
            packed, state = bf.quantize_4bit(x, blocksize=blocksize, quant_type=quant_type)
            found += [packed, state.absmax, bf.dequantize_4bit(packed, state)]
        packed, state = bf.quantize_4bit(x, quant_type=quant_type, compress_statistics=True)
        return found, packed, bf.dequantize_4bit(packed, state), sorted(state.as_dict(packed=True))

    for dtype in (torch.float32, torch.bfloat16, torch.float16):

        @step(f"Linear4bit, {quant_type}, {dtype}: output and gradients", quant_type, dtype)
        def _(quant_type, dtype):
            layer = bnb.nn.Linear4bit(64, 32, compute_dtype=dtype, quant_type=quant_type)
            weight = torch.randn(32, 64)
            layer.load_state_dict({"weight": weight, "bias": torch.randn(32)})
            layer = layer.to("cpu")
            x = torch.randn(5, 64, dtype=dtype, requires_grad=True)
            y = layer(x)
            y.float().square().sum().backward()
            one = layer(x[:1].detach())
            return y, x.grad, one, layer.weight.dtype, layer.weight.shape


@step("Linear4bit: state dict with its quantization, loaded again")
def _():
    layer = bnb.nn.Linear4bit(64, 32, compute_dtype=torch.float32, quant_type="nf4").to("cpu")
    state = layer.state_dict()
    weight = bnb.nn.Params4bit.from_prequantized(
        state["weight"], {k: v for k, v in state.items() if k.startswith("weight.")}, device="cpu"
    )
    again = bnb.nn.Linear4bit(64, 32, compute_dtype=torch.float32, quant_type="nf4")
    again.weight, again.bias = weight, layer.bias
    x = torch.randn(3, 64)
    torch.save(state, "layer.pt")
    return sorted(state), layer(x), again(x), sorted(torch.load("layer.pt", weights_only=False))


@step("Linear8bitLt: output and gradients, with and without a threshold")
def _():
    found = []
    for threshold in (0.0, 6.0):
        layer = bnb.nn.Linear8bitLt(64, 32, has_fp16_weights=False, threshold=threshold)
        layer.load_state_dict({"weight": torch.randn(32, 64), "bias": torch.zeros(32)})
        layer = layer.to("cpu")
        x = torch.randn(5, 64)
        x[:, 3] = 9.0
        x.requires_grad_()
        y = layer(x)
        y.square().sum().backward()
        found += [y, x.grad, layer.weight.dtype]
    return found


@step("int8_vectorwise_quant, int8_linear_matmul, int8_mm_dequant")
def _():
    a, b = torch.randn(6, 32), torch.randn(5, 32)
    qa, sa, _ = bf.int8_vectorwise_quant(a.half())
    qb, sb, _ = bf.int8_vectorwise_quant(b.half())
    product = bf.int8_linear_matmul(qa, qb)
    return qa, sa, product, bf.int8_mm_dequant(product, sa, sb)


@step("quantize_blockwise and its maps")
def _():
    x = torch.randn(1000)
    found = []
    for code in (None, bf.create_linear_map(), bf.create_dynamic_map(signed=False)):
        packed, state = bf.quantize_blockwise(x, code=code, blocksize=256)
        found += [packed, bf.dequantize_blockwise(packed, state)]
    return found, bf.create_dynamic_map(), bf.create_fp8_map(), bf.create_normal_map()


@step("Embedding4bit, Embedding8bit, StableEmbedding")
def _():
    ids, found = torch.tensor([[1, 5, 3]]), []
    for kind in (bnb.nn.Embedding4bit, bnb.nn.Embedding8bit, bnb.nn.EmbeddingNF4):
        layer = kind(20, 64)
        layer.load_state_dict({"weight": torch.randn(20, 64)})
        found.append(layer.to("cpu")(ids))
    return found, bnb.nn.StableEmbedding(20, 64)(ids)


@step("replace the layers of a model")
def _():
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    x = torch.randn(4, 64)
    full = net(x)
    for name in ("0", "2"):
        old = getattr(net, name)
        new = bnb.nn.LinearNF4(old.in_features, old.out_features, compute_dtype=torch.float32)
        new.load_state_dict(old.state_dict())
        setattr(net, name, new)
    net = net.to("cpu")
    return full, net(x)


@step("deepcopy and pickle of quantized parameters")
def _():
    import copy
    import pickle

    layer = bnb.nn.Linear4bit(64, 16, compute_dtype=torch.float32, quant_type="nf4").to("cpu")
    x = torch.randn(2, 64)
    return layer(x), copy.deepcopy(layer)(x), pickle.loads(pickle.dumps(layer))(x)


@step("refused: a block size that is none", refused=True)
def _():
    bf.quantize_4bit(torch.randn(64), blocksize=100)


@step("refused: a kind of 4 bits that is none", refused=True)
def _():
    bf.quantize_4bit(torch.randn(64), quant_type="int4")


@step("refused: an unsupported dtype", refused=True)
def _():
    bf.quantize_4bit(torch.arange(64))


@step("refused: int8 factors of other lengths", refused=True)
def _():
    bf.int8_linear_matmul(torch.ones(2, 8, dtype=torch.int8), torch.ones(2, 9, dtype=torch.int8))


@step("refused: the wrong dtype for an operator", refused=True)
def _():
    torch.ops.bitsandbytes.quantize_blockwise(torch.randn(64), torch.zeros(256).double(), 0)
