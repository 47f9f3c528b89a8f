"""Transforms with metadata: of arrays and dictionaries, random, inverted, cached, saved."""

import nibabel
import numpy as np
import torch
from monai import data
from monai import transforms as mt
from monai.data import MetaTensor
from monai.utils import set_determinism
from steps import step


def volume(side=16):
    affine = torch.tensor([[-1.5, 0, 0, 4], [0, 1.5, 0, 5], [0, 0, 2, 6], [0, 0, 0, 1.0]]).double()
    return MetaTensor(torch.rand(1, side, side, side), affine=affine, meta={"patient": "x"})


@step("a MetaTensor keeps its affine and metadata through operations")
def _():
    x = volume()
    y = (x * 2 + 1).mean(dim=1) / x.max()
    z = torch.stack([x, x])[0]
    return type(y).__name__, y.affine, y.meta["patient"], z.as_tensor(), x.pixdim


@step("Orientation, Spacing, Resize, Rotate, Zoom, CropForeground: values and affines")
def _():
    x, found = volume(), []
    for transform in (
        mt.Orientation("RAS"),
        mt.Spacing((2.0, 2.0, 2.0)),
        mt.Resize((12, 12, 12)),
        mt.Rotate((0.2, 0.1, 0.3)),
        mt.Zoom(1.2),
        mt.Flip(1),
        mt.Rotate90(1),
        mt.CropForeground(lambda t: t > 0.2),
        mt.SpatialPad((20, 20, 20)),
        mt.CenterSpatialCrop((10, 10, 10)),
        mt.Affine(rotate_params=(0.1, 0.0, 0.2), translate_params=(1.0, 2.0, 0.0), image_only=True),
        mt.GridDistortion(3, [(0.1, 0.0, -0.1, 0.05)] * 3),
    ):
        out = transform(x.clone())
        found.append((out.as_tensor(), out.affine, type(out).__name__))
    return found


@step("intensities: scaled, normalized, adjusted, smoothed, histogram, noise")
def _():
    x, found = volume(), []
    for transform in (
        mt.ScaleIntensity(),
        mt.ScaleIntensityRange(0.2, 0.8, 0, 1, clip=True),
        mt.ScaleIntensityRangePercentiles(5, 95, 0, 1),
        mt.NormalizeIntensity(nonzero=True, channel_wise=True),
        mt.AdjustContrast(1.5),
        mt.GaussianSmooth(1.0),
        mt.GaussianSharpen(),
        mt.MedianSmooth(1),
        mt.SavitzkyGolaySmooth(5, 2),
        mt.HistogramNormalize(num_bins=16),
        mt.ThresholdIntensity(0.5),
        mt.MaskIntensity((x > 0.5)[0][None]),
        mt.GibbsNoise(0.5),
        mt.DetectEnvelope(),
    ):
        out = transform(x.clone())
        found.append((out, type(out).__name__))
    return found


@step("random transforms with a seed")
def _():
    set_determinism(3)
    x, found = volume(), []
    for transform in (
        mt.RandFlip(0.5, 1),
        mt.RandRotate(0.4, 0.4, 0.4, prob=1.0),
        mt.RandZoom(1.0, 0.8, 1.2),
        mt.RandAffine(1.0, (0.2, 0.2, 0.2), translate_range=(2, 2, 2)),
        mt.Rand3DElastic((1, 2), (1, 2), 1.0),
        mt.RandGaussianNoise(1.0),
        mt.RandBiasField(prob=1.0),
        mt.RandAdjustContrast(1.0),
        mt.RandCoarseDropout(2, 4, prob=1.0),
        mt.RandSpatialCrop((8, 8, 8), random_size=False),
        mt.RandHistogramShift(prob=1.0),
        mt.RandRicianNoise(1.0),
    ):
        transform.set_random_state(3)
        found.append(transform(x.clone()).as_tensor())
    set_determinism(None)
    return found


def item(index):
    label = torch.zeros(1, 20, 20, 20)
    label[:, 4:10, 5 + index : 12, 6:14] = 1
    affine = torch.diag(torch.tensor([1.5, 1.5, 2.0, 1.0])).double()
    noise = torch.Generator().manual_seed(index)
    image = label + 0.3 * torch.rand(1, 20, 20, 20, generator=noise)
    return {"image": MetaTensor(image, affine=affine), "label": MetaTensor(label, affine=affine)}


BOTH = ["image", "label"]


def chain():
    return mt.Compose(
        [
            mt.Orientationd(BOTH, "RAS"),
            mt.Spacingd(BOTH, (1.7321, 1.8713, 2.2361), mode=("bilinear", "nearest")),
            mt.ScaleIntensityd("image"),
            mt.CropForegroundd(BOTH, "image", allow_smaller=True),
        ]
    )


@step("a chain over dictionaries, inverted")
def _():
    transform = chain()
    out = transform(item(0))
    back = transform.inverse(out)
    applied = [each["class"] for each in out["image"].applied_operations]
    return (
        out["image"],
        out["image"].affine,
        applied,
        back["image"],
        back["label"],
        back["image"].affine,
    )


@step("CacheDataset, random crops by label, a training of two epochs, inverted predictions")
def _():
    set_determinism(1)
    crops = mt.RandCropByPosNegLabeld(
        BOTH, "label", (8, 8, 8), 1, 1, num_samples=2, image_key="image", allow_smaller=True
    )
    train = data.CacheDataset(
        [item(i) for i in range(3)], mt.Compose([chain(), crops]), progress=False
    )
    loader = data.DataLoader(train, batch_size=2)
    net, losses = torch.nn.Conv3d(1, 1, 3, padding=1), []
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    for _ in range(2):
        for batch in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                net(batch["image"]), batch["label"]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    evaluate = chain()
    one = evaluate(item(1))
    one["pred"] = net(one["image"][None])[0].detach()
    post = mt.Compose(
        [
            mt.Invertd("pred", evaluate, "image", nearest_interp=False, to_tensor=True),
            mt.Activationsd("pred", sigmoid=True),
            mt.AsDiscreted("pred", threshold=0.5),
        ]
    )
    out = post(one)
    set_determinism(None)
    return losses, out["pred"].shape, out["pred"].sum(), out["pred"].affine, type(loss).__name__


@step("files: NIfTI loaded with metadata, saved, loaded again; NumPy and PNG")
def _():
    array = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    nibabel.save(nibabel.Nifti1Image(array, np.diag([1.0, 2.0, 3.0, 1.0])), "in.nii.gz")
    x = mt.LoadImage(image_only=True, ensure_channel_first=True)("in.nii.gz")
    save = mt.SaveImage(".", "seg", ".nii.gz", separate_folder=False, print_log=False)
    save(x * 2)
    again = mt.LoadImaged("image")({"image": "in_seg.nii.gz"})["image"]
    return x, x.affine, x.meta["pixdim"], again, again.affine


@step("lazy resampling gives what the single steps give")
def _():
    steps = [mt.Rotated(BOTH, 0.3, mode="bilinear"), mt.Zoomd(BOTH, 1.3), mt.Flipd(BOTH, 0)]
    lazy = mt.Compose(steps, lazy=True)(item(0))
    return lazy["image"], lazy["image"].affine


@step("post-processing: holes, argmax, votes, contours")
def _():
    scores = MetaTensor(torch.rand(3, 16, 16))
    discrete = mt.AsDiscrete(argmax=True, to_onehot=3)(scores)
    return (
        discrete,
        mt.FillHoles([1])(discrete),
        mt.LabelToContour()(discrete),
        mt.MeanEnsemble([0.3, 0.7])([scores, scores + 1]),
        mt.VoteEnsemble(num_classes=3)([discrete.argmax(0, keepdim=True)] * 3),
        mt.ProbNMS(prob_threshold=0.8, box_size=4)(scores[0].as_tensor()),
    )


@step("collation, pickling, torch.save, decollation, workers")
def _():
    import pickle

    items = [item(0), item(1)]
    batch = data.list_data_collate(items)
    torch.save(batch["image"], "batch.pt")
    again = torch.load("batch.pt", weights_only=False)
    parts = data.decollate_batch(batch)
    copied = pickle.loads(pickle.dumps(items[0]["image"]))
    loader = data.DataLoader(data.Dataset(items, chain()), batch_size=2, num_workers=1)
    loaded = next(iter(loader))["image"]
    return (
        again.affine,
        len(parts),
        parts[1]["image"].affine,
        copied.affine,
        loaded,
        type(loaded).__name__,
    )


@step("PersistentDataset, SmartCacheDataset, patches of a grid")
def _():
    kept = data.PersistentDataset([item(0)], chain(), "cache")
    first, second = kept[0], kept[0]
    patches = data.GridPatchDataset(
        [item(0)["image"]], data.PatchIter((10, 10, 10)), with_coordinates=False
    )
    return first["image"], type(second["image"]).__name__, [each.mean() for each in patches]


@step("a key that is not there is refused", refused=True)
def _():
    mt.Spacingd("absent", (1.0, 1.0, 1.0))(item(0))


@step("a file that is not there is refused", refused=True)
def _():
    mt.LoadImage()("absent.nii.gz")


@step("an orientation that is none is refused", refused=True)
def _():
    mt.Orientation("XYZ")(volume())


@step("a crop larger than the volume is refused", refused=True)
def _():
    mt.RandSpatialCrop((40, 40, 40), random_size=False)(volume(4)).reshape(3, 5)


@step("the inverse of what was not applied is refused", refused=True)
def _():
    mt.Spacingd(BOTH, (1.0, 1.0, 1.0)).inverse(item(0))
