"""YOLO: built from its configuration, trained, validated, predicting, exported; other tasks."""

import os

os.environ["YOLO_AUTOINSTALL"] = "False"
os.environ["YOLO_OFFLINE"] = "True"

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
import ultralytics.utils.checks  # noqa: E402
from PIL import Image, ImageDraw  # noqa: E402
from steps import step  # noqa: E402
from torchvision.ops import box_iou  # noqa: E402
from ultralytics import YOLO  # noqa: E402
from ultralytics.nn.tasks import ClassificationModel, DetectionModel, PoseModel, SegmentationModel  # noqa: E402

ultralytics.utils.checks.check_font = lambda font="": "absent.ttf"


def nms(boxes, scores, iou_threshold):
    """What torchvision's compiled operator does, for where it cannot be loaded."""
    kept = []
    for index in scores.argsort(descending=True).tolist():
        others = box_iou(boxes[index][None], boxes[kept])
        if not (others > iou_threshold).any():
            kept.append(index)
    return torch.tensor(kept, dtype=torch.long)


try:
    torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
except RuntimeError:
    torchvision.ops.nms = nms


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [leaf for each in value for leaf in leaves(each)]
        if isinstance(value, (list, tuple))
        else []
    )


def pictures():
    draw = np.random.default_rng(0)
    for part, count in (("train", 4), ("val", 2)):
        for kind in ("images", "labels"):
            os.makedirs(f"made/{kind}/{part}", exist_ok=True)
        for index in range(count):
            picture = Image.new("RGB", (64, 64), (40, 60, 80))
            x, y = draw.integers(8, 30, 2)
            ImageDraw.Draw(picture).rectangle((x, y, x + 24, y + 20), (250, 200, 20))
            picture.save(f"made/images/{part}/{index}.png")
            with open(f"made/labels/{part}/{index}.txt", "w") as file:
                file.write(f"{index % 2} {(x + 12) / 64} {(y + 10) / 64} {24 / 64} {20 / 64}\n")
    with open("made.yaml", "w") as file:
        file.write(f"path: {os.path.abspath('made')}\nnames: [a, b]\n")
        file.write("train: images/train\nval: images/val\n")


pictures()

for name, kind in (
    ("yolov8n.yaml", DetectionModel),
    ("yolo11n.yaml", DetectionModel),
    ("yolov8n-seg.yaml", SegmentationModel),
    ("yolov8n-pose.yaml", PoseModel),
    ("yolov8n-cls.yaml", ClassificationModel),
):

    @step(f"{name}: outputs and the gradient of the first weight", name, kind)
    def _(name, kind):
        model = (
            kind(name, nc=3, verbose=False)
            if kind is not PoseModel
            else kind(name, nc=1, data_kpt_shape=(5, 3), verbose=False)
        )
        x = torch.rand(2, 3, 64, 64)
        with torch.no_grad():
            out = model.eval()(x)
        trained = model.train()(x)
        flat = [t for t in leaves(trained) if t.requires_grad]
        sum(t.float().square().mean() for t in flat).backward()
        first = leaves(out)[0]
        return first, next(model.parameters()).grad


@step("the loss of detection and its parts")
def _():
    from ultralytics.cfg import get_cfg

    model = DetectionModel("yolov8n.yaml", nc=2, verbose=False)
    model.args = get_cfg()
    batch = {
        "img": torch.rand(2, 3, 64, 64),
        "cls": torch.tensor([[0.0], [1.0]]),
        "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.3], [0.4, 0.6, 0.3, 0.3]]),
        "batch_idx": torch.tensor([0.0, 1.0]),
    }
    loss, parts = model.train()(batch)
    loss.sum().backward()
    return loss, parts, model.model[0].conv.weight.grad


OPTIONS = {
    "data": "made.yaml",
    "epochs": 1,
    "imgsz": 64,
    "batch": 2,
    "workers": 0,
    "device": "cpu",
    "plots": False,
    "verbose": False,
    "seed": 0,
    "project": os.path.abspath("runs"),
    "exist_ok": True,
}


@step("an epoch of training: losses and weights; the best weights loaded; validated")
def _():
    model = YOLO("yolov8n.yaml", verbose=False)
    model.train(name="first", optimizer="SGD", lr0=0.001, **OPTIONS)
    import csv

    with open("runs/first/results.csv") as file:
        row = next(csv.DictReader(file))
    again = YOLO("runs/first/weights/last.pt")
    losses = [float(value) for key, value in row.items() if "train/" in key]
    weight = again.model.model[0].conv.weight
    found = again.val(
        data="made.yaml",
        imgsz=64,
        batch=2,
        workers=0,
        device="cpu",
        plots=False,
        verbose=False,
        project=os.path.abspath("runs"),
    )
    return losses, weight.float(), sorted(found.results_dict)


@step("predictions of pictures: boxes, their numbers, sizes")
def _():
    model = YOLO("yolov8n.yaml", verbose=False)
    found = model.predict(
        "made/images/val/0.png", imgsz=64, conf=0.0001, verbose=False, device="cpu", max_det=5
    )
    return found[0].boxes.xyxy, found[0].boxes.conf, found[0].orig_shape


@step("classification: predicted probabilities; embeddings")
def _():
    model = YOLO("yolov8n-cls.yaml", verbose=False)
    found = model.predict("made/images/val/0.png", imgsz=64, verbose=False, device="cpu")
    return found[0].probs.data[:10], model.embed("made/images/val/0.png", imgsz=64, verbose=False)[
        0
    ]


@step("export to TorchScript and to ONNX")
def _():
    import onnxruntime

    model = YOLO("yolov8n.yaml", verbose=False)
    path = model.export(format="onnx", imgsz=64, device="cpu", simplify=False, dynamic=False)
    session = onnxruntime.InferenceSession(path)
    x = np.random.default_rng(0).random((1, 3, 64, 64), dtype=np.float32)
    return session.run(None, {session.get_inputs()[0].name: x})[0]


@step("fused layers give the same numbers; the count of parameters")
def _():
    model = DetectionModel("yolov8n.yaml", nc=2, verbose=False).eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        before = leaves(model(x))[0]
        after = leaves(model.fuse(verbose=False)(x))[0]
    return before, after, sum(p.numel() for p in model.parameters())


@step("boxes: IoU of four kinds, clipping, suppression")
def _():
    from ultralytics.utils import metrics, ops

    one, other = (
        torch.rand(4, 4) + torch.tensor([0, 0, 1, 1]),
        torch.rand(4, 4) + torch.tensor([0, 0, 1, 1]),
    )
    kinds = [
        metrics.bbox_iou(one, other, xywh=False, **{k: True}) for k in ("GIoU", "DIoU", "CIoU")
    ]
    return (
        kinds,
        metrics.box_iou(one, other),
        ops.xyxy2xywh(one),
        ops.clip_boxes(one * 50, (60, 60)),
    )


@step("weights that are not there are refused", refused=True)
def _():
    YOLO("absent-folder/absent.pt")


@step("a task for a data set that is not there is refused", refused=True)
def _():
    YOLO("yolov8n.yaml", verbose=False).train(name="none", **{**OPTIONS, "data": "absent.yaml"})


@step("an unknown option is refused", refused=True)
def _():
    YOLO("yolov8n.yaml", verbose=False).train(nonsense=3, **OPTIONS)
