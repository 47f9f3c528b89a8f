"""The study's network, of whose parameters, gradients and momenta each process keeps a part.

    python -m tensorflow_lite_clone.distributed.run --nproc_per_node 2 \\
        -m examples.cifar.fsdp --data DIR --device cuda

A residual block's parameters are gathered when it computes, and let go when it has.
"""

from importlib import import_module

import tensorflow_lite_clone as torch
from examples.cifar import study
from examples.cifar.models import Block
from examples.world import joined

fully_shard = import_module(f"{torch.__name__}.distributed.fsdp").fully_shard


def sharded(model: study.StudyNet) -> study.StudyNet:
    """The model, in place: each block is a unit, and what is in none is another."""
    for module in model.modules():
        if isinstance(module, Block):
            fully_shard(module)
    return fully_shard(model)


def main() -> None:
    options = study.chosen(study.with_graph(study.parser(__doc__)))
    with joined(options.device) as world:
        model = study.network(options).to(world.device)
        study.run("fsdp", sharded(model), world, options)


if __name__ == "__main__":
    main()
