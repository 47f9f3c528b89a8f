"""Pipelines of augmentations, to tensors, in data sets with workers and in training."""

import os

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"

import albumentations as A  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from albumentations.pytorch import ToTensor3D, ToTensorV2  # noqa: E402
from steps import step  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402


def picture(index=0, side=32):
    return np.random.default_rng(index).integers(0, 255, (side, side, 3), dtype=np.uint8)


@step("pictures and masks to tensors")
def _():
    chain = A.Compose(
        [A.HorizontalFlip(p=1), A.Rotate(20, p=1), A.Normalize(), ToTensorV2(transpose_mask=True)],
        seed=3,
    )
    out = chain(image=picture(), mask=picture(1)[..., :2])
    return out["image"], out["mask"]


@step("boxes and keypoints")
def _():
    chain = A.Compose(
        [A.RandomCrop(24, 24), A.HorizontalFlip(p=1), ToTensorV2()],
        bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"]),
        keypoint_params=A.KeypointParams("xy"),
        seed=1,
    )
    out = chain(image=picture(), bboxes=[[3, 4, 20, 22]], labels=[1], keypoints=[(8.0, 9.0)])
    return out["image"], np.asarray(out["bboxes"]), np.asarray(out["keypoints"])


@step("volumes to tensors")
def _():
    volume = np.stack([picture(i) for i in range(4)])
    return A.Compose([A.CenterCrop3D((2, 16, 16)), ToTensor3D()], seed=1)(volume=volume)["volume"]


class Made(Dataset):
    def __init__(self):
        self.chain = A.Compose(
            [
                A.RandomResizedCrop((16, 16)),
                A.ColorJitter(),
                A.CoarseDropout(),
                A.Normalize(),
                ToTensorV2(),
            ],
            seed=5,
        )

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.chain(image=picture(index))["image"], index % 2


@step("a data set in batches, with and without workers; training of it")
def _():
    batch, _ = next(iter(DataLoader(Made(), 4)))
    shapes = [x.shape for x, _ in DataLoader(Made(), 4, num_workers=2)]
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(196, 2)
    )
    optimizer, losses = torch.optim.SGD(net.parameters(), 0.05), []
    for x, labels in DataLoader(Made(), 4):
        loss = torch.nn.functional.cross_entropy(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return batch, shapes, losses


@step("pipelines saved and loaded, replayed")
def _():
    chain = A.Compose([A.Affine(rotate=(-20, 20), p=1), ToTensorV2()], seed=2)
    again = A.from_dict(A.to_dict(chain))
    replay = A.ReplayCompose([A.RandomBrightnessContrast(p=1), ToTensorV2()], seed=2)
    out = replay(image=picture())
    return (
        len(again),
        out["image"],
        A.ReplayCompose.replay(out["replay"], image=picture(1))["image"],
    )


@step("a tensor instead of an array is refused", refused=True)
def _():
    A.Compose([A.HorizontalFlip(p=1)])(image=torch.rand(3, 8, 8))


@step("a crop larger than the picture is refused", refused=True)
def _():
    A.Compose([A.RandomCrop(64, 64), ToTensorV2()])(image=picture())


@step("a mask of another size is refused", refused=True)
def _():
    A.Compose([ToTensorV2()])(image=picture(), mask=picture(0, 16))
