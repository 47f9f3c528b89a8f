"""The study's network, a copy in each process, which trains on its part of every batch.

    python -m tensorflow_lite_clone.distributed.run --nproc_per_node 2 \\
        -m examples.cifar.ddp --data DIR --device cuda

Each process takes a GPU, and the gradients are averaged over all of them.
"""

import tensorflow_lite_clone as torch
from examples.cifar import study
from examples.cifar.step import aside
from examples.world import World, joined

nn = torch.nn


def copied(model: nn.Module, world: World, group: object = None) -> nn.Module:
    """The model on this process's device, whose gradients are averaged over a group's processes
    (by default all)."""
    with aside(world.device):  # where steps run before one is captured
        return nn.parallel.DistributedDataParallel(model.to(world.device), process_group=group)


def main() -> None:
    command = study.with_graph(study.parser(__doc__))
    command.add_argument(
        "--sync_batch_norm", action="store_true", help="statistics are of the whole batch"
    )
    options = study.chosen(command)
    with joined(options.device) as world:
        model = study.network(options)
        if options.sync_batch_norm:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        study.run("ddp", copied(model, world), world, options)


if __name__ == "__main__":
    main()
