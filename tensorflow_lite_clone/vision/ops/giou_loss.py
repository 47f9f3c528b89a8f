"""`generalized_box_iou_loss`, where torchvision keeps it."""

from __future__ import annotations

from tensorflow_lite_clone.vision.ops.iou_losses import generalized_box_iou_loss

__all__ = ["generalized_box_iou_loss"]
