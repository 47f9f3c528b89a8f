"""The register of models, and the pretrained weights each of them has."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatch
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from tensorflow_lite_clone import hub
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.vision.models._presets import (
    ImageClassification,
    SemanticSegmentation,
    VideoClassification,
)

__all__ = [
    "Weights",
    "WeightsEnum",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "list_models",
]

HOME = "https://download.pytorch.org/models/"

M = TypeVar("M", bound=Module)


@dataclass
class Weights:
    """Where a file of weights lies, how its pictures are prepared, and facts about it."""

    url: str
    transforms: Callable[..., Any]
    meta: dict[str, Any]


def imagenet(
    file: str, num_params: int, *, min_size: int = 1, size: int | None = None, **preset: Any
) -> Weights:
    """Weights learned from ImageNet-1K; `preset` goes to `ImageClassification`.

    Pictures are cropped to 224 x 224, or with `size` resized and cropped to it.
    """
    sizes = {"crop_size": 224} if size is None else {"crop_size": size, "resize_size": size}
    return _weights(file, num_params, min_size, partial(ImageClassification, **{**sizes, **preset}))


bicubic = partial(imagenet, interpolation="bicubic")


def coco(file: str, num_params: int) -> Weights:
    """Weights learned from COCO with Pascal VOC's classes, for segmentation."""
    return _weights(file, num_params, 1, partial(SemanticSegmentation, resize_size=520))


def kinetics(
    file: str,
    num_params: int,
    *,
    min_size: int = 1,
    min_temporal_size: int | None = None,
    **preset: Any,
) -> Weights:
    """Weights learned from Kinetics-400; `preset` goes to `VideoClassification`."""
    weights = _weights(file, num_params, min_size, partial(VideoClassification, **preset))
    if min_temporal_size is not None:
        weights.meta["min_temporal_size"] = min_temporal_size
    return weights


def _weights(file: str, num_params: int, min_size: int, transforms: Callable[..., Any]) -> Weights:
    meta = {"num_params": num_params, "min_size": (min_size, min_size)}
    return Weights(HOME + file, transforms, meta)


class WeightsEnum(Enum):
    """The weights of one model; `DEFAULT` is the best of them."""

    value: Weights

    @classmethod
    def verify(cls, obj: Any) -> Any:
        """A member from itself, its name, or `Enum.NAME`; None stays None.

        Raises KeyError for an unknown name, TypeError for anything else.
        """
        if obj is None or isinstance(obj, cls):
            return obj
        if isinstance(obj, str):
            return cls[obj.replace(f"{cls.__name__}.", "")]
        raise TypeError(
            f"Invalid Weight class provided; expected {cls.__name__} but received "
            f"{type(obj).__name__}."
        )

    def get_state_dict(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        """The tensors, downloaded once; the arguments are `hub.load_state_dict_from_url`'s."""
        return hub.load_state_dict_from_url(self.url, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    @property
    def url(self) -> str:
        return self.value.url

    @property
    def transforms(self) -> Callable[..., Any]:
        return self.value.transforms

    @property
    def meta(self) -> dict[str, Any]:
        return self.value.meta


BUILDERS: dict[str, Callable[..., Any]] = {}
WEIGHTS: dict[str, type[WeightsEnum]] = {}


def register_model(
    weights: type[WeightsEnum],
    *,
    backbone: type[WeightsEnum] | None = None,
    pretrained: WeightsEnum | None = None,
    num_classes: int = 1000,
    arguments: Callable[[dict[str, Any], WeightsEnum], None] | None = None,
    convert: Callable[[Mapping[str, Any], Any], Mapping[str, Any]] | None = None,
) -> Callable[[Callable[..., M]], Callable[..., M]]:
    """Makes a builder `(*, weights=None, progress=True, **kwargs)` of a function of `**kwargs`.

    Given weights, the model gets `num_classes` (ValueError if the caller wants another number)
    and what `arguments` writes into its arguments, and reads the downloaded tensors, first
    passed with the model through `convert`. `pretrained=True` and a truth value for `weights` are
    older spellings of `pretrained`, by default the first weights, and warn; so does
    `pretrained_backbone`, where the model has a `backbone` with weights of its own. A function
    that has a parameter `weights` is given them.
    """

    def decorate(function: Callable[..., M]) -> Callable[..., M]:
        own = inspect.signature(function).parameters

        @functools.wraps(function)
        def build(*args: Any, progress: bool = True, **kwargs: Any) -> M:
            if args:
                first = dict(zip(("weights", "progress"), args))
                warn_positional(first)
                return build(**first, **kwargs)
            chosen = chosen_weights(kwargs, "weights", weights, first=pretrained)
            if backbone is not None:
                default = own["weights_backbone"].default
                selected = chosen_weights(kwargs, "weights_backbone", backbone, default, default)
                kwargs["weights_backbone"] = None if chosen is not None else selected
            if "weights" in own:
                kwargs["weights"] = chosen
            if chosen is None:
                return function(**kwargs)
            _ovewrite_named_param(kwargs, "num_classes", num_classes)
            if arguments is not None:
                arguments(kwargs, chosen)
            model = function(**kwargs)
            state = chosen.get_state_dict(progress=progress, check_hash=True)
            model.load_state_dict(convert(state, model) if convert else state)
            return model

        keyword = inspect.Parameter.KEYWORD_ONLY
        shown = {
            "weights": inspect.Parameter("weights", keyword, default=None),
            "progress": inspect.Parameter("progress", keyword, default=True),
        }
        shown.update(own)
        build.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
        BUILDERS[function.__name__] = build
        WEIGHTS[function.__name__] = weights
        return build

    return decorate


def warn_positional(given: Mapping[str, Any]) -> None:
    names = " and ".join(f"'{name}'" for name in given)
    warnings.warn(
        f"Using {names} as positional parameter(s) is deprecated since 0.13 and may be removed in "
        "the future. Please use keyword parameter(s) instead.",
        stacklevel=level_outside(),
    )


def chosen_weights(
    kwargs: dict[str, Any],
    name: str,
    weights: type[WeightsEnum],
    default: WeightsEnum | None = None,
    first: WeightsEnum | None = None,
) -> WeightsEnum | None:
    """Takes the weights that a caller asks for, in any spelling, out of the arguments.

    `default` is meant by not saying anything, `first` (of all, if None) by a true value.
    """
    first = first or next(iter(weights))
    old = name.replace("weights", "pretrained")
    if old in kwargs:
        warnings.warn(
            f"The parameter '{old}' is deprecated since 0.13 and may be removed in the future, "
            f"please use '{name}' instead.",
            stacklevel=level_outside(),
        )
        kwargs[name] = bool(kwargs.pop(old))
    requested = kwargs.pop(name, default)
    if isinstance(requested, bool | int):
        instead = first if requested else None
        hint = f" You can also use `{name}={weights.__name__}.DEFAULT` to get the most up-to-date"
        warnings.warn(
            f"Arguments other than a weight enum or `None` for '{name}' are deprecated since 0.13 "
            "and may be removed in the future. The current behavior is equivalent to passing "
            f"`{name}={instead}`." + (f"{hint} weights." if instead else ""),
            stacklevel=level_outside(),
        )
        return instead
    return weights.verify(requested)


def _ovewrite_named_param(kwargs: dict[str, Any], param: str, new_value: Any) -> None:
    """Sets an argument that the weights decide; ValueError if it was given otherwise."""
    given = kwargs.setdefault(param, new_value)
    if given is not None and given != new_value:
        raise ValueError(
            f"The parameter '{param}' expected value {new_value} but got {given} instead."
        )
    kwargs[param] = new_value


def get_model_builder(name: str) -> Callable[..., Module]:
    """The function that builds a model, by its name; ValueError for an unknown one."""
    try:
        return BUILDERS[name.lower()]
    except KeyError:
        raise ValueError(f"Unknown model {name}") from None


def get_model(name: str, **config: Any) -> Module:
    """A model by its name; `config` are the arguments of its builder."""
    return get_model_builder(name)(**config)


def get_model_weights(name: Callable[..., Module] | str) -> type[WeightsEnum]:
    """The weights enum of a model, by its builder or its name; ValueError for others."""
    builder = get_model_builder(name) if isinstance(name, str) else name
    if builder not in BUILDERS.values():
        raise ValueError("The method is missing the 'weights' argument.")
    return WEIGHTS[builder.__name__]


def get_weight(name: str) -> WeightsEnum:
    """One set of weights by its full name, such as `"ResNet50_Weights.IMAGENET1K_V1"`.

    Raises ValueError for a name without a dot or an unknown enum, KeyError for an unknown member.
    """
    enum, dot, member = name.partition(".")
    if not dot:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    for weights in WEIGHTS.values():
        if weights.__name__ == enum:
            return weights[member]
    raise ValueError(f"The weight enum '{enum}' for the specific method couldn't be retrieved.")


def list_models(
    module: ModuleType | None = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """The sorted names of the models, or of those in a module.

    They match any of `include` and none of `exclude`, patterns like the shell's (`"resnet*"`).
    """

    def matches(name: str, patterns: Iterable[str] | str) -> bool:
        return any(
            fnmatch(name, p) for p in ([patterns] if isinstance(patterns, str) else patterns)
        )

    return sorted(
        name
        for name, builder in BUILDERS.items()
        if (module is None or sys.modules[builder.__module__].__package__ == module.__name__)
        and (not include or matches(name, include))
        and not matches(name, exclude or ())
    )
