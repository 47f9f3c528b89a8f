"""Datasets of pictures, with torchvision's names and folders."""

from __future__ import annotations

from tensorflow_lite_clone.vision.datasets import utils
from tensorflow_lite_clone.vision.datasets.cifar import CIFAR10, CIFAR100
from tensorflow_lite_clone.vision.datasets.fakedata import FakeData
from tensorflow_lite_clone.vision.datasets.folder import DatasetFolder, ImageFolder
from tensorflow_lite_clone.vision.datasets.mnist import EMNIST, KMNIST, MNIST, FashionMNIST
from tensorflow_lite_clone.vision.datasets.stl10 import STL10
from tensorflow_lite_clone.vision.datasets.svhn import SVHN
from tensorflow_lite_clone.vision.datasets.vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "EMNIST",
    "KMNIST",
    "MNIST",
    "STL10",
    "SVHN",
    "DatasetFolder",
    "FakeData",
    "FashionMNIST",
    "ImageFolder",
    "VisionDataset",
    "utils",
]
