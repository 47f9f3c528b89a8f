"""Pictures: filters, colour, geometry, enhancement, morphology, and gradients through them."""

import kornia
import torch
from kornia import color, contrib, enhance, filters, geometry, morphology
from steps import step


def picture(channels=3, side=24, **options):
    return torch.rand(2, channels, side, side, **options)


FILTERS = {
    "gaussian_blur2d": lambda x: filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "box_blur": lambda x: filters.box_blur(x, (3, 3)),
    "median_blur": lambda x: filters.median_blur(x, (3, 3)),
    "bilateral_blur": lambda x: filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "motion_blur": lambda x: filters.motion_blur(x, 5, 35.0, 0.5),
    "sobel": filters.sobel,
    "laplacian": lambda x: filters.laplacian(x, 3),
    "spatial_gradient": filters.spatial_gradient,
    "unsharp_mask": lambda x: filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
    "guided_blur": lambda x: filters.guided_blur(x, x, 3, 0.1),
    "canny": lambda x: filters.canny(x)[0],
    "blur_pool2d": lambda x: filters.blur_pool2d(x, 3),
}
COLOURS = (
    "rgb_to_grayscale rgb_to_hsv rgb_to_hls rgb_to_lab rgb_to_luv rgb_to_xyz rgb_to_ycbcr "
    "rgb_to_yuv rgb_to_linear_rgb sepia rgb_to_bgr"
).split()
ENHANCED = {
    "brightness": lambda x: enhance.adjust_brightness(x, 0.2),
    "contrast": lambda x: enhance.adjust_contrast(x, 0.5),
    "hue": lambda x: enhance.adjust_hue(x, 0.3),
    "gamma": lambda x: enhance.adjust_gamma(x, 1.7),
    "saturation": lambda x: enhance.adjust_saturation(x, 1.4),
    "sharpness": lambda x: enhance.sharpness(x, 0.6),
    "equalize": enhance.equalize,
    "clahe": lambda x: enhance.equalize_clahe(x, grid_size=(4, 4)),
    "normalize": lambda x: enhance.normalize(x, torch.tensor([0.5] * 3), torch.tensor([0.2] * 3)),
    "zca": lambda x: enhance.zca_whiten(x.reshape(-1, 8)[:, :4]),
    "jpeg": lambda x: enhance.jpeg_codec_differentiable(x, torch.tensor([50.0])),
    "solarize": lambda x: enhance.solarize(x, 0.5),
}
for group, table in (("filter", FILTERS), ("enhance", ENHANCED)):
    for name, function in table.items():

        @step(f"{group}: {name}, and its gradient", function)
        def _(function):
            x = picture(requires_grad=True)
            out = function(x)
            if out.requires_grad:
                (out**3).sum().backward()
            return out, x.grad


for name in COLOURS:

    @step(f"colour: {name}, and its gradient", name)
    def _(name):
        x = picture(requires_grad=True)
        out = getattr(color, name)(x)
        out.square().sum().backward()
        return out, x.grad


@step("colour: there and back")
def _():
    x = picture()
    pairs = (
        (color.rgb_to_hsv, color.hsv_to_rgb),
        (color.rgb_to_lab, color.lab_to_rgb),
        (color.rgb_to_luv, color.luv_to_rgb),
        (color.rgb_to_yuv, color.yuv_to_rgb),
    )
    return [back(there(x)) for there, back in pairs]


@step("geometry: rotate, scale, shear, translate, affine, perspective, elastic")
def _():
    x = picture()
    corners = torch.tensor([[[0.0, 0], [23, 0], [23, 23], [0, 23]]]).repeat(2, 1, 1)
    matrix = geometry.get_perspective_transform(corners, corners * 0.8 + 2)
    return (
        geometry.rotate(x, torch.tensor([30.0, -12.0])),
        geometry.scale(x, torch.tensor([1.5, 0.7])),
        geometry.shear(x, torch.tensor([[0.2, 0.1], [0.0, 0.3]])),
        geometry.translate(x, torch.tensor([[2.0, 1.0], [-3.5, 0.0]])),
        geometry.warp_perspective(x, matrix, (20, 20)),
        geometry.elastic_transform2d(x, torch.rand(2, 2, 24, 24) * 2 - 1),
        geometry.pyrdown(x),
        geometry.build_pyramid(x, 3),
        geometry.resize(x, (12, 18), antialias=True),
        geometry.center_crop(x, (10, 10)),
    )


@step("geometry: rotations as matrices, quaternions, angles; cameras; depth")
def _():
    vector = torch.randn(3, 3)
    quaternion = geometry.axis_angle_to_quaternion(vector)
    matrix = geometry.quaternion_to_rotation_matrix(quaternion)
    camera = torch.tensor([[[20.0, 0, 12], [0, 20, 12], [0, 0, 1]]])
    points = geometry.depth_to_3d(torch.rand(1, 1, 24, 24) + 1, camera)
    return (
        quaternion,
        matrix,
        geometry.rotation_matrix_to_axis_angle(matrix),
        geometry.project_points(points.permute(0, 2, 3, 1), camera[:, None, None]),
        geometry.transform_points(torch.eye(4)[None], torch.rand(1, 5, 3)),
    )


@step("geometry: homography, fundamental and essential matrices from points")
def _():
    points = torch.rand(1, 12, 2, dtype=torch.float64) * 10
    matrix = torch.tensor([[[1.1, 0.1, 2.0], [-0.1, 0.9, 1.0], [0.001, 0.002, 1.0]]]).double()
    moved = geometry.transform_points(matrix, points)
    fundamental = geometry.find_fundamental(points, moved + 0.01 * torch.rand_like(moved))
    return geometry.find_homography_dlt(points, moved), fundamental.abs().norm() > 0


@step("geometry: an image registered by gradient descent")
def _():
    reference = filters.gaussian_blur2d(picture(1, 32), (9, 9), (3.0, 3.0))[:1]
    moved = geometry.translate(reference, torch.tensor([[1.5, -1.0]]))
    registrator = geometry.ImageRegistrator("similarity", num_iterations=15, pyramid_levels=2)
    return registrator.register(moved, reference)


@step("morphology, and its gradient")
def _():
    x, kernel = picture(1, requires_grad=True), torch.ones(3, 3)
    names = "dilation erosion opening closing gradient top_hat bottom_hat".split()
    out = [getattr(morphology, name)(x, kernel) for name in names]
    sum(each.square().sum() for each in out).backward()
    return out, x.grad


@step("patches taken and put together, connected components, distances")
def _():
    x = picture(1)
    patches = contrib.extract_tensor_patches(x, window_size=8, stride=4)
    whole = contrib.combine_tensor_patches(
        contrib.extract_tensor_patches(x, window_size=8, stride=8),
        original_size=24,
        window_size=8,
        stride=8,
    )
    marks = contrib.connected_components((x > 0.6).float(), 30)
    return patches, whole, marks, contrib.distance_transform((x > 0.9).float(), 5)


@step("draw, histogram, tensors from and to pictures")
def _():
    import numpy as np

    x = picture()
    box = torch.tensor([[[2, 2, 8, 8]]] * 2)
    drawn = kornia.utils.draw_rectangle(x.clone(), box, color=torch.tensor([1.0, 0, 0]))
    counts = enhance.histogram(x[:, 0].flatten(1), torch.linspace(0, 1, 8), torch.tensor(0.1))
    array = np.random.default_rng(0).integers(0, 255, (6, 5, 3), dtype=np.uint8)
    tensor = kornia.utils.image_to_tensor(array)
    return drawn, counts, tensor, kornia.utils.tensor_to_image(tensor)


@step("a picture without channels is refused", refused=True)
def _():
    color.rgb_to_hsv(torch.rand(4))


@step("integers where numbers between 0 and 1 are needed are refused", refused=True)
def _():
    enhance.adjust_hue(torch.randint(0, 255, (1, 3, 4, 4)), "x")


@step("a kernel of another kind is refused", refused=True)
def _():
    filters.gaussian_blur2d(torch.rand(3, 4, 4), (3, 3), (1.0, 1.0))


@step("points of another dimension are refused", refused=True)
def _():
    geometry.transform_points(torch.eye(3)[None], torch.rand(1, 4, 3))
