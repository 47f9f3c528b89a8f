"""Models against torchvision's: trees, first values, outputs, gradients, weights."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import models
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tests.vision.zoo import (
    array,
    assert_same_run,
    assert_same_start,
    layout,
    libraries,
    narrow_linear,
    needs_torchvision,
    oracle,
    same,
    tensor,
    twins,
    untouched_memory,
)

pytestmark = needs_torchvision

SEGMENTATION = models.list_models(models.segmentation)
NAMES = [*models.list_models(models), *SEGMENTATION]
REGISTERED = models.list_models()


def built(library: Any, name: str) -> Any:
    """A model by its name, without downloads or first values that take long."""
    backbone = {"weights_backbone": None} if name in SEGMENTATION else {}
    inception = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return library.models.get_model(name, **backbone, **inception)


@pytest.mark.parametrize("name", NAMES)
def test_state_dict(name: str) -> None:
    with untouched_memory():
        there, here = twins(lambda library: built(library, name))
    assert layout(here) == layout(there)
    parameters = sum(parameter.numel() for parameter in here.parameters())
    facts = models.get_model_weights(name).DEFAULT.meta
    # Counted with another head, or for larger pictures, or without auxiliary heads.
    if name not in (*SEGMENTATION, "vit_h_14", "googlenet"):
        assert parameters == facts["num_params"]


def small_vit(m: Any, **kwargs: Any) -> Any:
    return m.models.VisionTransformer(16, 8, 2, 2, 8, 16, num_classes=5, **kwargs)


def stem(m: Any) -> Any:
    config = m.models.vision_transformer.ConvStemConfig
    return small_vit(m, conv_stem_configs=[config(4, 3, 2), config(6, 3, 4)])


def small_swin(m: Any, **kwargs: Any) -> Any:
    return m.models.SwinTransformer(
        [2, 2], 8, [2, 2], [2, 4], [3, 4], num_classes=5, stochastic_depth_prob=0.4,
        dropout=0.1, attention_dropout=0.1, **kwargs,
    )  # fmt: skip


def swin_v2(m: Any) -> Any:
    swin = m.models.swin_transformer
    return small_swin(m, block=swin.SwinTransformerBlockV2, downsample_layer=swin.PatchMergingV2)


def small_convnext(m: Any) -> Any:
    config = m.models.convnext.CNBlockConfig
    stages = [config(4, 8, 2), config(8, None, 2)]
    return m.models.ConvNeXt(stages, 0.5, layer_scale=0.5, num_classes=5)


def small_efficientnet(m: Any) -> Any:
    net = m.models.efficientnet
    stages = [net.FusedMBConvConfig(1, 3, 1, 8, 8, 2), net.FusedMBConvConfig(4, 3, 2, 8, 16, 2)]
    stages += [net.MBConvConfig(4, 5, 2, 16, 24, 2), net.MBConvConfig(1, 3, 1, 24, 24, 3)]
    return m.models.EfficientNet(stages, 0.2, stochastic_depth_prob=0.5, num_classes=5)


def narrow_resnet(m: Any, **kwargs: Any) -> Any:
    kwargs.setdefault("width_per_group", 4)
    block = m.models.resnet.Bottleneck
    return m.models.ResNet(block, [1, 2, 1, 1], num_classes=5, **kwargs)


def small_regnet(m: Any, **kwargs: Any) -> Any:
    params = m.models.regnet.BlockParams.from_init_params(6, 16, 12.5, 2.2, 8, **kwargs)
    return m.models.RegNet(params, num_classes=5, stem_width=8)


def fcn(m: Any) -> Any:
    resnet = narrow_resnet(m, replace_stride_with_dilation=[False, True, True])
    layers = {"layer2": "out", "layer1": "aux"}
    backbone = m.models._utils.IntermediateLayerGetter(resnet, layers)
    head = m.models.segmentation.fcn.FCNHead
    return m.models.segmentation.fcn.FCN(backbone, head(512, 3), head(256, 3))


def lraspp(m: Any) -> Any:
    features = m.models.mobilenet_v3_large(width_mult=0.25, dilated=True).features
    backbone = m.models._utils.IntermediateLayerGetter(features, {"4": "low", "16": "high"})
    widths = [features[index].out_channels for index in (4, 16)]
    return m.models.segmentation.lraspp.LRASPP(backbone, *widths, 3, inter_channels=8)


def deeplab_head(m: Any) -> Any:
    return m.models.segmentation.deeplabv3.DeepLabHead(3, 4, (1, 2))


# What to build, and the side of the pictures.
SMALL: dict[str, tuple[Any, int]] = {
    "resnet18": (lambda m: m.models.resnet18(num_classes=5), 32),
    "resnet_zero": (lambda m: narrow_resnet(m, zero_init_residual=True), 32),
    "resnext": (lambda m: narrow_resnet(m, groups=4), 32),
    "resnet_dilated": (
        lambda m: narrow_resnet(
            m, replace_stride_with_dilation=[False, True, True],
            norm_layer=lambda width: m.nn.GroupNorm(2, width),
        ),
        32,
    ),
    "squeezenet1_0": (lambda m: m.models.squeezenet1_0(num_classes=5), 33),
    "squeezenet1_1": (lambda m: m.models.squeezenet1_1(num_classes=5), 33),
    "densenet": (
        lambda m: m.models.DenseNet(4, (2, 3, 1, 2), 8, drop_rate=0.2, num_classes=5), 32,
    ),
    "densenet_memory": (
        lambda m: m.models.DenseNet(4, (1, 2), 8, num_classes=5, memory_efficient=True), 32,
    ),
    "mobilenet_v2": (lambda m: m.models.mobilenet_v2(width_mult=0.25, num_classes=5), 32),
    "mobilenet_v3_small": (lambda m: m.models.mobilenet_v3_small(num_classes=5), 32),
    "mobilenet_v3_tail": (
        lambda m: m.models.mobilenet_v3_large(width_mult=0.25, reduced_tail=True, dilated=True),
        32,
    ),
    "efficientnet": (small_efficientnet, 32),
    "shufflenet_v2_x0_5": (lambda m: m.models.shufflenet_v2_x0_5(num_classes=5), 32),
    "mnasnet": (lambda m: m.models.MNASNet(0.3, num_classes=5), 32),
    "regnet_x": (small_regnet, 32),
    "regnet_y": (lambda m: small_regnet(m, se_ratio=0.25, bottleneck_multiplier=0.5), 32),
    "convnext": (small_convnext, 32),
    "vit_dropout": (
        lambda m: small_vit(m, dropout=0.2, attention_dropout=0.2, representation_size=6), 16,
    ),
    "vit_stem": (stem, 16),
    "swin": (small_swin, 18),
    "swin_v2": (swin_v2, 18),
    "fcn": (fcn, 32),
    "deeplab_head": (deeplab_head, 12),
    "lraspp": (lraspp, 32),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str) -> None:
    build, side = SMALL[name]
    there, here = twins(build)
    assert_same_start(there, here)
    if name.startswith("vit"):  # whose last layer starts with zeros
        torch.nn.init.normal_(there.heads.head.weight)
    assert_same_run(there, here, torch.randn(4, 3, side, side + (side % 2)))


@pytest.mark.parametrize("name", ["alexnet", "vgg11", "vgg11_bn"])
def test_models_with_large_classifiers(name: str) -> None:
    with narrow_linear():
        there, here = twins(lambda library: library.models.get_model(name))
        assert_same_start(there, here)
    side = 63 if name == "alexnet" else 32
    assert_same_run(there.features, here.features, torch.randn(2, 3, side, side))


def test_first_values_of_inception() -> None:
    """Its blocks alone: the whole would take seconds."""
    there, here = twins(lambda m: m.models.inception.InceptionAux(8, 5))
    assert_same_start(there, here)
    assert (here.conv1.stddev, here.fc.stddev) == (there.conv1.stddev, there.fc.stddev)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("A", (8, 4)), ("B", (8,)), ("C", (8, 4)), ("D", (8,)), ("E", (8,))],
)
def test_inception_blocks(name: str, arguments: tuple[int, ...]) -> None:
    there, here = twins(lambda m: getattr(m.models.inception, f"Inception{name}")(*arguments))
    assert_same_start(there, here)
    assert_same_run(there, here, torch.randn(1, 8, 7, 7))


@pytest.mark.parametrize("name", ["inception_v3", "googlenet"])
def test_whole_inceptions(name: str) -> None:
    with untouched_memory():
        there, here = twins(
            lambda m: m.models.get_model(
                name, num_classes=5, init_weights=False, aux_logits=False, transform_input=True
            )
        )
    generator = torch.Generator().manual_seed(0)
    for parameter in there.parameters():
        parameter.data = torch.rand(parameter.shape, generator=generator) * 0.1 - 0.04
    there, here = there.eval(), here.eval()
    here.load_state_dict({name: tensor(value) for name, value in there.state_dict().items()})
    x = torch.randn(1, 3, 75, 75, generator=generator)
    with torch.no_grad(), tlc.no_grad():
        y, expected = array(here(tensor(x))), array(there(x))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


def test_parts_of_googlenet() -> None:
    # `models.googlenet` is the function, there as here.
    there, here = twins(
        lambda m: sys.modules[m.models.GoogLeNet.__module__].Inception(8, 2, 3, 4, 5, 6, 7)
    )
    assert_same_start(there, here)
    assert_same_run(there, here, torch.randn(2, 8, 6, 5))


def test_pretrained_positions_fit_other_pictures() -> None:
    results = []
    for m in libraries():
        state = {"heads.x": m.torch.ones(1)}
        state["encoder.pos_embedding"] = m.torch.arange(20.0).view(1, 10, 2)
        fitted = m.models.vision_transformer.interpolate_embeddings(8, 2, state, reset_heads=True)
        assert list(fitted) == ["encoder.pos_embedding"]
        results.append(array(fitted["encoder.pos_embedding"]))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="perfect square"):
        models.vision_transformer.interpolate_embeddings(
            8, 2, {"encoder.pos_embedding": tlc.zeros(1, 12, 2)}
        )


def test_intermediate_layers() -> None:
    there, here = twins(
        lambda m: m.models._utils.IntermediateLayerGetter(
            narrow_resnet(m), {"layer1": "a", "layer3": "b"}
        )
    )
    assert_same_start(there, here)
    x = torch.randn(1, 3, 32, 32)
    assert {k: list(v.shape) for k, v in here(tensor(x)).items()} == {
        k: list(v.shape) for k, v in there(x).items()
    }
    same(lambda m: m.models._utils.IntermediateLayerGetter(m.nn.Sequential(), {"x": "y"}))


def test_extracted_features() -> None:
    nodes = {"relu": "first", "layer2.0.conv2": "inner", "layer3": "stage", "avgpool": "pooled"}

    def build(m: Any) -> Any:
        extraction = importlib.import_module(f"{m.models.__name__}.feature_extraction")
        return extraction.create_feature_extractor(narrow_resnet(m), nodes)

    there, here = twins(build)
    # PyTorch's leaves out what it does not need.
    needed = set(there.state_dict())
    assert [name for name, *_ in layout(here) if name in needed] == list(there.state_dict())
    there, here = there.double(), here.double()
    here.load_state_dict({k: tensor(v) for k, v in there.state_dict().items()}, strict=False)
    x = torch.randn(4, 3, 32, 32).double()
    for mode in ("train", "eval"):
        expected, results = getattr(there, mode)()(x), getattr(here, mode)()(tensor(x))
        assert list(results) == list(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(array(results[name]), array(value), rtol=1e-8, atol=1e-9)


def test_names_of_nodes() -> None:
    def names(m: Any) -> Any:
        extraction = importlib.import_module(f"{m.models.__name__}.feature_extraction")
        narrow = narrow_resnet(m)
        created = extraction.create_feature_extractor(narrow, ["layer1.0.relu_1", "flatten"])
        return extraction.get_graph_node_names(narrow), created.code, narrow.training

    same(names)


def test_extraction_of_nothing() -> None:
    create = models.feature_extraction.create_feature_extractor
    model = tlc.nn.Sequential(tlc.nn.ReLU(), tlc.nn.Tanh())
    for nodes in ({}, {"return_nodes": ["0"], "train_return_nodes": ["0"]}):
        with pytest.raises(ValueError, match="should be specified"):
            create(model, **nodes)
    with pytest.raises(ValueError, match="not present"):
        create(model, ["2"])
    both = create(model, train_return_nodes=["0"], eval_return_nodes=["1"])
    assert list(both(tlc.ones(1))) == ["0"]
    assert list(both.eval()(tlc.ones(1))) == ["1"]


@pytest.mark.parametrize("name", ["efficientnet_b0", "efficientnet_v2_s"])
def test_a_caller_decides_what_a_builder_has_a_default_for(name: str) -> None:
    with untouched_memory():
        for library in libraries():
            model = getattr(library.models, name)(dropout=0.7)
            assert model.classifier[0].p == 0.7


def test_divisible_widths() -> None:
    same(
        lambda m: [
            m.models._utils._make_divisible(width, divisor, least)
            for width in (1, 3.9, 12, 17, 20.5, 99)
            for divisor in (4, 8)
            for least in (None, 16)
        ]
    )


def test_register() -> None:
    there = oracle().models
    kept = [name for name in there.list_models() if name in REGISTERED]
    assert kept == REGISTERED
    wanted = [name for name in there.list_models(there) if not name.startswith("maxvit")]
    assert models.list_models(models) == wanted
    for kind in ("segmentation", "detection"):
        expected = there.list_models(getattr(there, kind))
        assert models.list_models(getattr(models, kind)) == expected
    same(lambda m: m.models.list_models(include="res*", exclude=["*50*", "*101*"]))
    same(lambda m: m.models.list_models(include=["vgg*", "alex*"]))
    same(lambda m: m.models.get_model("nothing"))
    same(lambda m: m.models.get_model_builder("ResNet18").__name__)


@pytest.mark.parametrize("name", REGISTERED)
def test_weights(name: str) -> None:
    def script(m: Any) -> Any:
        enum = m.models.get_model_weights(name)
        facts = []
        for key, weights in enum.__members__.items():
            preset = {"resize_size": 256, "interpolation": "bilinear"}  # the defaults
            given = getattr(weights.transforms, "keywords", {})
            preset |= {k: getattr(v, "value", v) for k, v in given.items()}
            facts.append((key, repr(weights), weights.url, preset))
            facts += [weights.meta["num_params"], weights.meta["min_size"]]
            assert m.models.get_weight(str(weights)) is weights
        assert m.models.get_model_weights(m.models.get_model_builder(name)) is enum
        return enum.__name__, facts

    result, _ = same(script)
    assert result == models.get_model_weights(name).__name__


def test_unknown_weights() -> None:
    for name in ("nothing", "nothing.X", "ResNet18_Weights.X"):
        same(lambda m, name=name: m.models.get_weight(name))
    same(lambda m: m.models.get_model_weights("nothing"))
    same(lambda m: m.models.get_model_weights(print))
    same(lambda m: m.models.mobilenet_v3_small(weights="nothing"))
    same(lambda m: m.models.mobilenet_v3_small(weights=m.models.ResNet18_Weights.DEFAULT))
    same(lambda m: m.models.mobilenet_v3_small(weights="DEFAULT", num_classes=5))
    same(lambda m: m.models.vit_b_16(weights="DEFAULT", image_size=32))


SIGNED = ["resnet18", "vit_b_16", "googlenet"]


@pytest.mark.parametrize("name", SIGNED)
def test_signatures(name: str) -> None:
    def script(m: Any) -> Any:
        parameters = inspect.signature(m.models.get_model_builder(name)).parameters.values()
        return [(p.name, p.kind.name, repr(p.default)) for p in parameters]

    same(script)


CALLS = [
    {"weights": "DEFAULT"},
    {"weights": "ResNet18_Weights.IMAGENET1K_V1", "num_classes": 1000},
    {"pretrained": True},
    {"pretrained": False},
    {"weights": True, "progress": False},
    {"weights": None, "num_classes": 3},
]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_loading(call: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The download is replaced by a state full of ones."""

    def script(m: Any) -> Any:
        asked: list[Any] = []

        def downloaded(weights: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append((repr(weights), args, kwargs))
            state = m.models.resnet18().state_dict()
            return {name: m.torch.ones_like(value) for name, value in state.items()}

        monkeypatch.setattr(m.models.WeightsEnum, "get_state_dict", downloaded)
        model = m.models.resnet18(**call)
        return asked, list(model.fc.weight.shape), bool((model.fc.weight == 1).all())

    with untouched_memory():
        same(script)


def test_positional_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    same(lambda m: type(m.models.mobilenet_v3_small(None)).__name__)
    same(lambda m: type(m.models.mobilenet_v3_small(False, False)).__name__)


def test_old_names_of_dense_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = models.densenet121()
    old = {
        name.replace(".norm1.", ".norm.1.").replace(".conv2.", ".conv.2."): value
        for name, value in fresh.state_dict().items()
    }
    assert list(old) != list(fresh.state_dict())
    monkeypatch.setattr(WeightsEnum, "get_state_dict", lambda self, **kwargs: old)
    loaded = models.densenet121(weights="DEFAULT")
    name = "features.denseblock2.denselayer3.conv2.weight"
    assert (loaded.state_dict()[name] == fresh.state_dict()[name]).all()


def test_auxiliary_heads_of_pretrained_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    with untouched_memory():
        fresh = models.googlenet(init_weights=False)
        state = fresh.state_dict()
        monkeypatch.setattr(WeightsEnum, "get_state_dict", lambda self, **kwargs: state)
        loaded = models.googlenet(weights="DEFAULT")
        assert loaded.aux1 is None and loaded.transform_input
        with pytest.warns(UserWarning, match="NOT pretrained"):
            assert models.googlenet(weights="DEFAULT", aux_logits=True).aux2 is not None


def test_weights_of_backbones(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(m: Any) -> Any:
        asked: list[str] = []
        build = m.models.mobilenet_v3_large

        def downloaded(weights: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append(repr(weights))
            return build(dilated=True).state_dict()

        monkeypatch.setattr(m.models.WeightsEnum, "get_state_dict", downloaded)
        name = "lraspp_mobilenet_v3_large"
        widths = []
        for kwargs in ({}, {"pretrained_backbone": False}, {"weights_backbone": None}):
            model = m.models.get_model(name, num_classes=7, **kwargs)
            widths.append(model.classifier.low_classifier.out_channels)
        return asked, widths

    with untouched_memory():
        same(script)


def test_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def load(url: str, **kwargs: Any) -> dict[str, Any]:
        calls.append((url, kwargs))
        return {}

    monkeypatch.setattr("tensorflow_lite_clone.hub.load_state_dict_from_url", load)
    assert models.AlexNet_Weights.DEFAULT.get_state_dict(progress=False) == {}
    assert calls == [(models.AlexNet_Weights.DEFAULT.url, {"progress": False})]


def test_presets_print_alike() -> None:
    same(lambda m: repr(m.models.ResNet50_Weights.DEFAULT.transforms()))
    same(lambda m: repr(m.models.EfficientNet_B0_Weights.DEFAULT.transforms()))
    same(lambda m: repr(m.models.segmentation.FCN_ResNet50_Weights.DEFAULT.transforms()))
    same(lambda m: repr(m.models.detection.FCOS_ResNet50_FPN_Weights.DEFAULT.transforms()))


def test_both_are_compared() -> None:
    there, here = libraries()
    assert there.models is not here.models
