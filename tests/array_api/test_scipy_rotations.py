"""`scipy.spatial.transform` on tensors: rotations and rigid motions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import check, lines

transform = pytest.importorskip("scipy.spatial.transform", reason="SciPy is not installed")

# r: three rotations; one: a rotation; m: three rigid motions; moved: one motion; points: three.
ROTATIONS = """
Rotation.align_vectors(points, one.apply(points))[0].as_matrix()
Rotation.concatenate([r, one]).as_quat()
Rotation.from_davenport(arr([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), "e", points[:, :2]).as_quat()
Rotation.from_euler("xyz", points).as_matrix()
Rotation.from_euler("z", p[:, None]).as_quat()
Rotation.from_matrix(r.as_matrix()).as_quat()
Rotation.from_mrp(points).as_quat()
Rotation.from_quat(quaternions).as_matrix()
Rotation.from_rotvec(points).as_matrix()
(r * one).as_quat()
(r**2).as_quat()
(r**0.5).as_rotvec()
[part.as_quat() for part in r]
r.apply(points)
one.apply(points, inverse=True)
r.approx_equal(r * one)
r.as_davenport(arr([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), "extrinsic")
r.as_euler("zyx", degrees=True)
r.as_matrix()
r.as_mrp()
r.as_quat(canonical=True, scalar_first=True)
r.as_rotvec()
r.inv().as_quat()
r.magnitude()
r.mean().as_matrix()
r.mean(weights=u[:3]).as_quat()
r.reduce(one * r, Rotation.from_rotvec(points)).as_quat()
r[0].as_quat()
r[1:].as_quat()
"Rotation" in repr(r)
changed(r, one).as_quat()
Slerp(arr([0.0, 1.0, 2.0]), r)(u).as_quat()
"""
MOTIONS = """
RigidTransform.concatenate([m, moved]).as_matrix()
RigidTransform.from_components(points, r).as_matrix()
RigidTransform.from_dual_quat(m.as_dual_quat()).as_matrix()
RigidTransform.from_exp_coords(m.as_exp_coords()).as_matrix()
RigidTransform.from_matrix(m.as_matrix()).as_matrix()
RigidTransform.from_rotation(r).as_matrix()
RigidTransform.from_translation(points).as_matrix()
(m * moved).as_matrix()
(m**0.5).as_matrix()
[part.as_matrix() for part in m]
m.apply(points)
m.as_components()[0]
m.as_dual_quat()
m.as_exp_coords()
m.as_matrix()
m.inv().as_matrix()
m.mean().as_matrix()
m.rotation.as_quat()
m.translation
m[1].as_matrix()
changed(m, moved).as_matrix()
"""


def names(given: dict[str, Any]) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    arr = given["arr"]
    points, quaternions = draw.standard_normal((3, 3)), draw.standard_normal((3, 4))
    made = {"points": arr(points), "quaternions": arr(quaternions)}
    made["r"] = transform.Rotation.from_quat(made["quaternions"])
    made["one"] = transform.Rotation.from_rotvec(arr([0.2, -0.3, 0.4]))
    made["m"] = transform.RigidTransform.from_components(made["points"], made["r"])
    made["moved"] = transform.RigidTransform.from_components(arr([1.0, 2.0, 3.0]), made["one"])
    return made


def changed(many: Any, one: Any) -> Any:
    """With another second one."""
    many[1] = one
    return many


@pytest.mark.parametrize("call", lines(ROTATIONS + MOTIONS))
def test_call(call: str) -> None:
    check(call, transform, names=lambda given: names(given) | {"changed": changed})
