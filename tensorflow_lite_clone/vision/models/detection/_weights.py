"""Where the detectors' weights lie, and what they were learned from."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone.vision.models._api import HOME, Weights, register_model
from tensorflow_lite_clone.vision.models._presets import ObjectDetection

COCO = (
    "__background__,person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,"
    "fire hydrant,N/A,stop sign,parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,"
    "zebra,giraffe,N/A,backpack,umbrella,N/A,N/A,handbag,tie,suitcase,frisbee,skis,snowboard,"
    "sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,N/A,"
    "wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,"
    "pizza,donut,cake,chair,couch,potted plant,bed,N/A,dining table,N/A,N/A,toilet,N/A,tv,laptop,"
    "mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,N/A,book,clock,vase,"
    "scissors,teddy bear,hair drier,toothbrush"
).split(",")
CLASSES = len(COCO)


def detection(file: str, num_params: int, **facts: Any) -> Weights:
    """Weights learned from COCO; `facts` go to their `meta`."""
    meta = {"num_params": num_params, "min_size": (1, 1), "categories": COCO, **facts}
    return Weights(HOME + file, ObjectDetection, meta)


register_detector = partial(register_model, num_classes=CLASSES)
