"""Learning: augmentations with boxes and masks, losses, features and their matching, metrics."""

import kornia.augmentation as K
import torch
from kornia import feature, losses, metrics
from steps import step

AUGMENTATIONS = {
    "ColorJitter": K.ColorJitter(0.2, 0.3, 0.2, 0.1, p=1.0),
    "RandomAffine": K.RandomAffine(20.0, (0.1, 0.1), (0.8, 1.2), 10.0, p=1.0),
    "RandomHorizontalFlip": K.RandomHorizontalFlip(p=0.5),
    "RandomResizedCrop": K.RandomResizedCrop((16, 16), p=1.0),
    "RandomPerspective": K.RandomPerspective(0.3, p=1.0),
    "RandomErasing": K.RandomErasing(p=1.0),
    "RandomGaussianNoise": K.RandomGaussianNoise(0.0, 0.1, p=1.0),
    "RandomGaussianBlur": K.RandomGaussianBlur((3, 3), (0.5, 1.5), p=1.0),
    "RandomElasticTransform": K.RandomElasticTransform(p=1.0),
    "RandomThinPlateSpline": K.RandomThinPlateSpline(p=1.0),
    "RandomGrayscale": K.RandomGrayscale(p=0.5),
    "RandomPosterize": K.RandomPosterize(3, p=1.0),
    "RandomMotionBlur": K.RandomMotionBlur(3, 20.0, 0.5, p=1.0),
    "RandomFisheye": K.RandomFisheye(
        torch.tensor([-0.3, 0.3]), torch.tensor([-0.3, 0.3]), torch.tensor([0.9, 1.0]), p=1.0
    ),
    "RandomMixUpV2": K.RandomMixUpV2(p=1.0, data_keys=["input"]),
    "RandomMosaic": K.RandomMosaic(p=1.0, data_keys=["input"]),
    "RandomRotation3D": K.RandomRotation3D((10.0, 20.0, 30.0), p=1.0),
}
for name, augment in AUGMENTATIONS.items():

    @step(f"augmentation: {name}", name, augment)
    def _(name, augment):
        shape = (2, 1, 6, 8, 8) if name.endswith("3D") else (4, 3, 24, 24)
        return augment(torch.rand(shape))


@step("a sequence over pictures, masks, boxes and points, and its inverse")
def _():
    both = K.AugmentationSequential(
        K.RandomHorizontalFlip(p=1.0),
        K.RandomAffine(15.0, p=1.0),
        K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
        data_keys=["input", "mask", "bbox_xyxy", "keypoints"],
    )
    x, mask = torch.rand(2, 3, 24, 24), (torch.rand(2, 1, 24, 24) > 0.5).float()
    boxes = torch.tensor([[[2.0, 3, 10, 12]]] * 2)
    points = torch.tensor([[[4.0, 5]]] * 2)
    out = both(x, mask, boxes, points)
    return out, both.inverse(*out), both.transform_matrix


@step("the same parameters again; RandAugment; gradients through an augmentation")
def _():
    flip = K.RandomAffine(20.0, p=1.0)
    x = torch.rand(2, 3, 16, 16, requires_grad=True)
    out = flip(x)
    again = flip(x, params=flip._params)
    out.square().sum().backward()
    from kornia.augmentation.auto import RandAugment

    return out, (again - out).abs().max(), x.grad, RandAugment(n=2, m=10)(torch.rand(2, 3, 24, 24))


LOSSES = {
    "ssim": lambda x, y: losses.ssim_loss(x, y, 5),
    "ms_ssim": lambda x, y: losses.MS_SSIMLoss(sigmas=[0.5, 1.0])(x, y),
    "psnr": lambda x, y: losses.psnr_loss(x, y, 1.0),
    "total variation": lambda x, y: losses.total_variation(x).mean(),
    "charbonnier": lambda x, y: losses.charbonnier_loss(x, y, reduction="mean"),
    "welsch": lambda x, y: losses.welsch_loss(x, y, reduction="mean"),
    "inverse depth": lambda x, y: losses.inverse_depth_smoothness_loss(x[:, :1], y),
    "divergence": lambda x, y: losses.js_div_loss_2d(
        x.flatten(2).softmax(2).view_as(x), y.flatten(2).softmax(2).view_as(y)
    ),
}
LABELLED = {
    "dice": losses.dice_loss,
    "tversky": lambda x, y: losses.tversky_loss(x, y, 0.3, 0.7),
    "focal": lambda x, y: losses.focal_loss(x, y, 0.5, 2.0, reduction="mean"),
    "lovasz": losses.lovasz_softmax_loss,
}
for name, function in LOSSES.items():

    @step(f"loss: {name}, and its gradient", function)
    def _(function):
        x, y = torch.rand(2, 3, 24, 24, requires_grad=True), torch.rand(2, 3, 24, 24)
        loss = function(x, y)
        loss.backward()
        return loss, x.grad


for name, function in LABELLED.items():

    @step(f"loss: {name}, and its gradient", function)
    def _(function):
        x, y = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randint(3, (2, 8, 8))
        loss = function(x, y)
        loss.backward()
        return loss, x.grad


@step("Hausdorff losses")
def _():
    x = torch.randn(2, 2, 8, 8).softmax(1).requires_grad_()
    loss = losses.HausdorffERLoss(k=4)(x, torch.randint(2, (2, 1, 8, 8)))
    loss.backward()
    return loss, x.grad


@step("corners: Harris, Shi-Tomasi, Hessian, DoG")
def _():
    x = torch.rand(1, 1, 24, 24)
    return (
        feature.harris_response(x),
        feature.gftt_response(x),
        feature.hessian_response(x),
        feature.dog_response_single(x, 1.0, 1.6),
    )


@step("SIFT descriptors, HardNet's and HyNet's features with made weights")
def _():
    x = torch.rand(3, 1, 32, 32)
    return (
        feature.SIFTDescriptor(32)(x),
        feature.HardNet(pretrained=False).eval()(x),
        feature.HyNet(pretrained=False).eval()(x),
    )


@step("keypoints with scale and orientation, described and matched")
def _():
    blobs = torch.nn.functional.interpolate(torch.rand(1, 1, 12, 12), size=(64, 64), mode="bicubic")
    detector = feature.ScaleSpaceDetector(20, ori_module=feature.LAFOrienter(19))
    frames, responses = detector(blobs)
    patches = feature.extract_patches_from_pyramid(blobs, frames, 32)
    descriptions = feature.SIFTDescriptor(32)(patches[0])
    return responses.sort().values, descriptions.sum(0)


@step("matching by nearest neighbours, mutual and by ratio")
def _():
    one, other = torch.rand(10, 8), torch.rand(12, 8)
    return (
        feature.match_nn(one, other),
        feature.match_mnn(one, other),
        feature.match_snn(one, other, 0.9),
        feature.match_smnn(one, other, 0.95),
    )


@step("networks: SOLD2-like, LoFTR with made weights")
def _():
    x = torch.rand(1, 1, 64, 64)
    matcher = feature.LoFTR(pretrained=None).eval()
    with torch.no_grad():
        found = matcher({"image0": x, "image1": x.flip(3)})
    return {name: found[name].shape for name in ("keypoints0", "confidence")}


@step("metrics: IoU, confusion, PSNR, SSIM, accuracy, endpoint error")
def _():
    one, other = torch.randint(3, (2, 16)), torch.randint(3, (2, 16))
    x, y = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
    return (
        metrics.mean_iou(one, other, 3),
        metrics.confusion_matrix(one, other, 3),
        metrics.psnr(x, y, 1.0),
        metrics.ssim(x, y, 5),
        metrics.accuracy(torch.rand(6, 4), torch.arange(6) % 4, (1, 2)),
        metrics.aepe(torch.rand(2, 4, 4, 2), torch.rand(2, 4, 4, 2)),
    )


@step("augmentations in training: losses of four steps")
def _():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(196, 2)
    )
    augment = K.AugmentationSequential(
        K.RandomHorizontalFlip(), K.ColorJitter(0.2, 0.2, 0.2, 0.1, p=0.8)
    )
    optimizer, found = torch.optim.Adam(net.parameters(), 1e-2), []
    x, labels = torch.rand(6, 3, 16, 16), torch.arange(6) % 2
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(net(augment(x)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@step("a probability beyond one is refused", refused=True)
def _():
    K.RandomHorizontalFlip(p=1.5)(torch.rand(1, 3, 4, 4))


@step("a key of data that is unknown is refused", refused=True)
def _():
    K.AugmentationSequential(K.RandomHorizontalFlip(), data_keys=["nonsense"])


@step("pictures of two sizes are refused by SSIM", refused=True)
def _():
    losses.ssim_loss(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 9), 3)


@step("labels of another size are refused by Dice", refused=True)
def _():
    losses.dice_loss(torch.rand(1, 2, 8, 8), torch.ones(1, 4, 4, dtype=torch.long))
