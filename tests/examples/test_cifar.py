"""The CIFAR-10 example: its pictures, its network, its losses beside PyTorch's, its messages."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from examples.cifar import data, train
from examples.cifar.models import MODELS, resnet18, resnet20
from tests.device import DEVICE
from tests.examples.against_torch import ROOT, copy_for_torch, run
from tests.examples.pictures import write_cifar10

REAL = os.environ.get(data.PLACE)
SMALL = ("--batch_size=8", "--epochs=2", "--truncate_train=20", "--truncate_test=5")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cifar")
    write_cifar10(folder)
    return folder


@pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed")
def test_same_losses_as_under_torch(place: Path, tmp_path: Path) -> None:
    """Four steps: initial values, order, crops and mirrors are drawn as PyTorch draws them."""
    copy_for_torch(tmp_path)
    losses, printed = [], []
    for number, folder in enumerate((ROOT, tmp_path)):
        log, output = tmp_path / f"log{number}", tmp_path / f"output{number}"
        options = (*SMALL, f"--data={place}", f"--log={log}", f"--output={output}")
        printed.append(run(folder, "examples.cifar.train", *options))
        losses.append(np.loadtxt(log))
    assert losses[0].shape == (4,)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    for text in printed:
        assert re.search(r"epoch  2  loss \d+\.\d{4}  test accuracy \d+\.\d\d%  \d+\.\d s", text)
    # either library reads what the other wrote
    ours = torch.load(tmp_path / "output0" / "cifar_resnet20.pth")
    theirs = tlc.load(tmp_path / "output1" / "cifar_resnet20.pth")
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name].numpy(), rtol=1e-3, atol=1e-3, err_msg=name)
    with np.load(tmp_path / "output0" / "cifar_resnet20.npz") as arrays:
        np.testing.assert_array_equal(arrays["fc/weight"], ours["fc.weight"])
        assert f"test accuracy {arrays['about/test_accuracy']:.2%}" in printed[0]


@pytest.mark.skipif(DEVICE != "cuda", reason="about a CUDA device")
def test_a_captured_step_on_a_gpu(place: Path, tmp_path: Path) -> None:
    """The first losses are the CPU's, with convolutions in TF32."""
    losses = []
    for name, more in {"cpu": (), "cuda": ("--compile",)}.items():
        options = (*SMALL, f"--data={place}", f"--output={tmp_path}", *more)
        run(ROOT, "examples.cifar.train", f"--device={name}", f"--log={tmp_path / name}", *options)
        losses.append(np.loadtxt(tmp_path / name))
    np.testing.assert_allclose(losses[0][:2], losses[1][:2], rtol=1e-2)


def test_crops_and_mirrors() -> None:
    """Every picture comes once, moved by up to four pixels over black, half of them mirrored."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    tlc.manual_seed(0)
    batches = data.Shuffled(tlc.from_numpy(pixels), tlc.arange(40), 16)
    assert len(batches) == 2
    got = list(batches)
    assert [tuple(images.shape) for images, _ in got] == [(16, 3, 32, 32)] * 2
    seen, moves, mirrors = [], set(), 0
    padded = np.pad(pixels, ((0, 0), (4, 4), (4, 4), (0, 0)))
    for images, labels in got:
        back = images.permute(0, 2, 3, 1) * batches.std + batches.mean
        for picture, label in zip(back.numpy().round(), labels.tolist(), strict=True):
            found = [
                (down, right, mirrored)
                for down in range(9)
                for right in range(9)
                for mirrored in (False, True)
                if (crop(padded[label], down, right, mirrored) == picture).all()
            ]
            assert len(found) == 1, label
            seen.append(label)
            moves.add(found[0][:2])
            mirrors += found[0][2]
    assert len(set(seen)) == 32
    assert len(moves) > 20
    assert 8 < mirrors < 24
    assert [labels.tolist() for _, labels in batches] != [labels.tolist() for _, labels in got]


def crop(padded: np.ndarray, down: int, right: int, mirrored: bool) -> np.ndarray:
    picture = padded[down : down + 32, right : right + 32]
    return picture[:, ::-1] if mirrored else picture


def test_test_pictures_are_normalised_only(place: Path) -> None:
    pixels, labels = data.read(place, False, 5, "cpu")
    pictures = data.Pictures(pixels, labels)
    assert len(pictures) == 5
    ((first, _), (second, rest)) = pictures.batches(3)
    assert tuple(second.shape) == (2, 3, 32, 32)
    assert rest.tolist() == labels[3:].tolist()
    wanted = (pixels[:3].numpy() / 255 - data.MEAN) / data.STD
    np.testing.assert_allclose(first.numpy(), wanted.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)


def test_resnet20() -> None:
    """Twenty layers with weights and the paper's 0.27 million parameters."""
    model = resnet20()
    assert sum(value.numel() for value in model.parameters()) == 269_722
    layers = [m for m in model.modules() if isinstance(m, tlc.nn.Conv2d | tlc.nn.Linear)]
    assert len(layers) == 20
    names = dict(model.named_modules())
    assert {"layer1.0.conv1", "layer3.2.relu2", "layer2.0.shortcut", "fc"} <= set(names)
    x = tlc.arange(2 * 4 * 4).reshape(1, 2, 4, 4).float()
    y = names["layer2.0.shortcut"](x)
    assert tuple(y.shape) == (1, 18, 2, 2)
    assert y[0, 8].tolist() == [[0, 2], [8, 10]]
    assert y[0, :8].any().item() is False
    assert y[0, 10:].any().item() is False


def test_resnet18() -> None:
    """Eighteen layers with weights, beside the three of the shortcuts."""
    model = resnet18()
    assert sum(value.numel() for value in model.parameters()) == 11_173_962
    layers = [m for m in model.modules() if isinstance(m, tlc.nn.Conv2d | tlc.nn.Linear)]
    assert len(layers) - sum(m.kernel_size == (1, 1) for m in layers[:-1]) == 18
    pixels = [
        tuple(part(tlc.zeros(1, c, 32, 32)).shape)
        for part, c in zip(model[3:7], (64, 64, 128, 256))
    ]
    assert pixels == [(1, 64, 32, 32), (1, 128, 16, 16), (1, 256, 16, 16), (1, 512, 16, 16)]


def test_a_forward_pass_in_bfloat16(place: Path, tmp_path: Path) -> None:
    """The losses are those of float32 but for rounding, and the weights stay float32."""
    losses = []
    for dtype in ("float32", "bfloat16"):
        options = (*SMALL, f"--data={place}", f"--output={tmp_path}", f"--log={tmp_path / dtype}")
        run(ROOT, "examples.cifar.train", f"--dtype={dtype}", "--lr=0.001", *options)
        losses.append(np.loadtxt(tmp_path / dtype))
    np.testing.assert_allclose(losses[1], losses[0], rtol=5e-2)
    assert (losses[0] != losses[1]).all()
    weights = tlc.load(tmp_path / "cifar_resnet20.pth")
    assert weights["conv1.weight"].dtype == tlc.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give its folder as --data or in the variable CIFAR10_DATA"),
        (("--data=nowhere",), "nowhere has no folder cifar-10-batches-py"),
        (("--epochs=0",), "expected a positive whole number, got '0'"),
        (("--batch_size=many",), "expected a positive whole number, got 'many'"),
        (("--model=alexnet",), f"choose from '?{'|'.join(MODELS)}"),
        pytest.param(
            ("--device=cuda",),
            "there is no GPU",
            marks=pytest.mark.skipif(tlc.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_refused(
    options: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv(data.PLACE, raising=False)
    monkeypatch.setattr("sys.argv", ["train", *options])
    with pytest.raises(SystemExit) as caught:
        train.main()
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_broken_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    path.write_bytes(path.read_bytes()[:100])
    monkeypatch.setattr("sys.argv", ["train", f"--data={tmp_path}"])
    with pytest.raises(SystemExit) as caught:
        train.main()
    assert caught.value.code == 2
    assert f"{path} cannot be read" in capsys.readouterr().err


def test_a_loss_that_is_not_finite_ends_it(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.PLACE, str(place))
    options = (*SMALL, "--lr=1e30", f"--output={tmp_path}")
    monkeypatch.setattr("sys.argv", ["train", *options])
    with (
        np.errstate(all="ignore"),
        pytest.raises(SystemExit, match=r"the loss is nan: try a smaller --lr than 1e\+30"),
    ):
        train.main()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not REAL, reason=f"{data.PLACE} names no folder with CIFAR-10")
def test_the_photographs() -> None:
    """The constants are those of the training set."""
    pixels, labels = data.read(data.folder(None), True, None, "cpu")
    assert tuple(pixels.shape) == (50_000, 32, 32, 3)
    assert labels.bincount().tolist() == [5000] * 10
    channels = pixels.numpy().reshape(-1, 3) / np.float32(255)
    np.testing.assert_allclose(channels.mean(0, dtype=np.float64), data.MEAN, atol=2e-3)
    np.testing.assert_allclose(channels.std(0, dtype=np.float64), data.STD, atol=4e-3)
