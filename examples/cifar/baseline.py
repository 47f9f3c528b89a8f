"""The study's network, trained by one process on one device.

    python -m examples.cifar.baseline --data DIR --device cuda

What the others are compared with.
"""

from examples.cifar import study
from examples.world import alone


def main() -> None:
    options = study.chosen(study.with_graph(study.parser(__doc__)))
    world = alone(options.device)
    model = study.network(options).to(world.device)
    study.run("baseline", model, world, options)


if __name__ == "__main__":
    main()
