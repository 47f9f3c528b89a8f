"""Learners: vision and tabular, callbacks, schedules, lr_find, exporting, interpretation."""

import os
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from fastai import losses, metrics, optimizer  # noqa: E402
from fastai.callback.all import (  # noqa: E402
    CSVLogger,
    EarlyStoppingCallback,
    GradientAccumulation,
    GradientClip,
    MixUp,
    ReduceLROnPlateau,
    SaveModelCallback,
)
from fastai.tabular.all import (  # noqa: E402
    Categorify,
    FillMissing,
    Normalize,
    TabularDataLoaders,
    tabular_learner,
)
from fastai.vision.all import (  # noqa: E402
    CategoryBlock,
    ClassificationInterpretation,
    DataBlock,
    DataLoader,
    DataLoaders,
    DynamicUnet,
    ImageBlock,
    ImageDataLoaders,
    Learner,
    PILImage,
    RandomSplitter,
    Resize,
    TensorImage,
    TensorMask,
    aug_transforms,
    create_body,
    get_image_files,
    load_learner,
    parent_label,
    set_seed,
    vision_learner,
    xresnet18,
)
from PIL import Image  # noqa: E402
from steps import step  # noqa: E402
from torch import nn  # noqa: E402
from torchvision.models import resnet18  # noqa: E402


def line():
    x = torch.linspace(-1, 1, 64)[:, None]
    data = list(zip(x, 2 * x + 0.5, strict=True))
    return DataLoaders(
        DataLoader(data[:48], bs=8, shuffle=True, num_workers=0),
        DataLoader(data[48:], bs=8, num_workers=0),
    )


def learner(**options):
    net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
    learn = Learner(line(), net, loss_func=nn.MSELoss(), metrics=metrics.mae, **options)
    return learn


def history(learn):
    return [list(map(float, row)) for row in learn.recorder.values], learn.recorder.losses


for name in ("fit", "fit_one_cycle", "fit_flat_cos", "fit_sgdr"):

    @step(f"{name}: losses, metrics, rates", name)
    def _(name):
        set_seed(1)
        learn = learner()
        getattr(learn, name)(
            *((2, 1) if name == "fit_sgdr" else (3,)),
            **({"lr_max": 0.05} if name in ("fit_one_cycle", "fit_sgdr") else {"lr": 0.05}),
        )
        return history(learn), learn.recorder.lrs


for name in "SGD RMSProp Adam RAdam QHAdam Larc Lamb ranger".split():

    @step(f"optimizer {name}", name)
    def _(name):
        set_seed(1)
        learn = learner(opt_func=getattr(optimizer, name), wd=0.01)
        learn.fit(2, lr=0.01)
        return history(learn), learn.model[0].weight


@step("lr_find")
def _():
    set_seed(1)
    learn = learner()
    found = learn.lr_find(num_it=30, show_plot=False)
    return found.valley, learn.recorder.losses


@step("callbacks: saved best, early stop, CSV, clipping, accumulation, MixUp-less plateau")
def _():
    set_seed(1)
    learn = learner(
        cbs=[
            SaveModelCallback(fname="best"),
            EarlyStoppingCallback(patience=1),
            CSVLogger(),
            GradientClip(0.5),
            GradientAccumulation(16),
            ReduceLROnPlateau(patience=1),
        ]
    )
    learn.fit(4, lr=0.05)
    return history(learn), len(pd.read_csv("history.csv"))


@step("predictions, validation, weights saved and loaded")
def _():
    set_seed(1)
    learn = learner()
    learn.fit(1, lr=0.05)
    predictions, targets = learn.get_preds()
    learn.save("weights")
    learn.fit(1, lr=0.05)
    learn.load("weights")
    again = learn.get_preds()[0]
    return predictions, targets, (again - predictions).abs().max(), learn.validate()


@step("frozen groups, rates by slices")
def _():
    set_seed(1)

    def groups(model):
        return [list(model[0].parameters()), list(model[2].parameters())]

    learn = learner(splitter=groups)
    learn.freeze()
    learn.fit(1, lr=0.05)
    before = learn.model[0].weight.clone()
    learn.unfreeze()
    learn.fit(1, lr=slice(1e-3, 1e-2))
    return before, learn.model[0].weight, [group["lr"] for group in learn.opt.hypers]


def folders():
    generator = np.random.default_rng(0)
    for label, shade in (("dark", 40), ("light", 180)):
        os.makedirs(f"pictures/{label}", exist_ok=True)
        for index in range(8):
            array = generator.integers(shade, shade + 60, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(array).save(f"pictures/{label}/{index}.png")


folders()


@step("vision: a data block, augmentation, an xresnet trained")
def _():
    set_seed(2, reproducible=True)
    block = DataBlock(
        (ImageBlock, CategoryBlock),
        get_items=get_image_files,
        get_y=parent_label,
        splitter=RandomSplitter(0.25, seed=1),
        item_tfms=Resize(32),
        batch_tfms=aug_transforms(size=32, max_warp=0.1),
    )
    dls = block.dataloaders("pictures", bs=4, num_workers=0)
    x, y = dls.one_batch()
    learn = Learner(dls, xresnet18(n_out=2), metrics=metrics.accuracy)
    learn.fit(1, lr=1e-4)
    return type(x).__name__, type(y).__name__, x.mean(), x.std(), learn.recorder.losses


@step("vision_learner on folders: losses, a prediction by name, the confusion matrix")
def _():
    set_seed(2, reproducible=True)
    dls = ImageDataLoaders.from_folder(
        "pictures", valid_pct=0.25, seed=1, item_tfms=Resize(32), bs=6, num_workers=0
    )
    learn = vision_learner(dls, resnet18, pretrained=False, metrics=metrics.error_rate)
    learn.fit_one_cycle(1, 1e-4)
    label, index, scores = learn.predict("pictures/dark/0.png")
    matrix = ClassificationInterpretation.from_learner(learn).confusion_matrix()
    return learn.recorder.losses, scores, matrix.sum(), len(learn.recorder.values[0])


@step("MixUp and label smoothing")
def _():
    set_seed(2, reproducible=True)
    dls = ImageDataLoaders.from_folder(
        "pictures", valid_pct=0.25, seed=1, item_tfms=Resize(16), bs=6, num_workers=0
    )
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 2))
    learn = Learner(dls, net, loss_func=losses.LabelSmoothingCrossEntropy(), cbs=MixUp(0.4))
    learn.fit(2, lr=1e-3)
    return history(learn)


@step("typed tensors keep their types through operations")
def _():
    x, mask = TensorImage(torch.rand(3, 4, 4)), TensorMask(torch.ones(4, 4).long())
    return [
        type(each).__name__ for each in (x + 1, x.mean(0), x[0], mask == 1, torch.stack([x, x]))
    ], (x * 2).sum()


@step("a dynamic U-Net on a body: masks and the gradient")
def _():
    body = create_body(resnet18(), pretrained=False)
    model = DynamicUnet(body, 3, (64, 64)).eval()
    out = model(torch.rand(1, 3, 64, 64))
    found = losses.DiceLoss()(out, torch.randint(3, (1, 64, 64)))
    found.backward()
    return out, found, body[0].weight.grad


def table():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "colour": generator.choice(["red", "green", "blue"], 120),
            "size": generator.normal(3, 1, 120),
            "age": generator.normal(40, 9, 120),
        }
    )
    frame.loc[::9, "age"] = np.nan
    frame["label"] = np.where((frame["size"] > 3) | (frame["colour"] == "red"), "yes", "no")
    return frame


@step("tabular: categories, missing values, a learner, exported, its prediction of a row")
def _():
    set_seed(3)
    dls = TabularDataLoaders.from_df(
        table(),
        procs=[Categorify, FillMissing, Normalize],
        cat_names=["colour"],
        cont_names=["size", "age"],
        y_names="label",
        valid_idx=list(range(90, 120)),
        bs=16,
        num_workers=0,
    )
    learn = tabular_learner(dls, layers=[16, 8], metrics=metrics.accuracy)
    learn.fit_one_cycle(3, 1e-2)
    learn.export("learner.pkl")
    _, label, scores = load_learner("learner.pkl").predict(table().iloc[0])
    return history(learn), label, scores, learn.get_preds()[0]


@step("weights of another network are refused", refused=True)
def _():
    learn = learner()
    learn.save("other")
    learn.model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
    learn.load("other")


@step("a file that is not there is refused", refused=True)
def _():
    load_learner("absent.pkl")


@step("pictures that are not there are refused", refused=True)
def _():
    PILImage.create("absent.png")
