"""Datasets as tensors: formats, loaders, maps, streams, saved."""

import datasets
import numpy as np
import torch
from datasets import (
    Array2D,
    ClassLabel,
    Dataset,
    DatasetDict,
    Features,
    IterableDataset,
    List,
    Value,
)
from steps import step
from torch.utils.data import DataLoader

datasets.disable_progress_bars()


def rows(count=12):
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(count, 4)).astype(np.float32),
        "y": [i % 3 for i in range(count)],
        "text": [f"row {i}" for i in range(count)],
        "picture": rng.integers(0, 255, (count, 2, 3)).tolist(),
    }


FEATURES = Features(
    {
        "x": List(Value("float32"), length=4),
        "y": ClassLabel(names=["a", "b", "c"]),
        "text": Value("string"),
        "picture": Array2D((2, 3), "int64"),
    }
)


def made(count=12):
    values = rows(count)
    return Dataset.from_dict({**values, "x": values["x"].tolist()}, features=FEATURES)


@step("with_format('torch'): a row, a slice, a column, dtypes")
def _():
    data = made().with_format("torch")
    found = data[0], data[2:5], data["x"][:3]
    return found, [str(v.dtype) for v in data[0].values() if isinstance(v, torch.Tensor)]


@step("set_format with columns, a dtype, and the others kept")
def _():
    data = made()
    data.set_format("torch", columns=["x", "y"], dtype=torch.float64)
    first = data[:2]
    data.set_format("torch", columns=["x"], output_all_columns=True)
    second = data[1]
    data.reset_format()
    return first, second, data[0]["y"]


@step("a DataLoader: batches, workers, shuffled, a collator")
def _():
    data = made().with_format("torch", columns=["x", "y"])
    found = [list(DataLoader(data, batch_size=5, num_workers=n)) for n in (0, 2)]
    torch.manual_seed(0)
    shuffled = list(DataLoader(data, batch_size=5, shuffle=True))

    def collate(batch):
        return torch.stack([row["x"] for row in batch]).sum(0)

    return found, shuffled, list(DataLoader(data, batch_size=4, collate_fn=collate))


@step("training a classifier from a dataset")
def _():
    data = made(30).with_format("torch", columns=["x", "y"])
    net = torch.nn.Linear(4, 3)
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.3), []
    for _ in range(3):
        for batch in DataLoader(data, batch_size=10, shuffle=True):
            loss = torch.nn.functional.cross_entropy(net(batch["x"]), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, net.weight


@step("map with tensors in and out; filter; sort; shuffle; select; train_test_split; shard")
def _():
    data = made().with_format("torch")
    mapped = data.map(lambda row: {"norm": row["x"].norm(), "twice": row["x"] * 2})
    batched = data.map(lambda b: {"mean": b["x"].mean(1)}, batched=True, batch_size=5)
    split = data.train_test_split(0.25, seed=0)
    return (
        mapped["norm"][:],
        mapped["twice"][:],
        batched["mean"][:],
        data.filter(lambda row: row["y"] == 1)["x"][:],
        data.sort("y", reverse=True)["y"][:],
        data.shuffle(seed=3)["y"][:],
        data.select([3, 1])["x"][:],
        split["test"]["y"][:],
        data.shard(3, 1)["y"][:],
        data.map(lambda row, i: {"i": i}, with_indices=True, remove_columns=["text"])["i"][:],
    )


@step("map in two processes; a function that holds a model; its fingerprint")
def _():
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)

    def apply(batch):
        with torch.no_grad():
            return {"out": net(torch.as_tensor(batch["x"]))}

    data = made().with_format("torch")
    one = data.map(apply, batched=True)["out"][:]
    two = data.map(apply, batched=True, num_proc=2)["out"][:]
    again = data.map(apply, batched=True)._fingerprint == data.map(apply, batched=True)._fingerprint
    return one, two, again


@step("set_transform and with_transform")
def _():
    def transform(batch):
        return {"x": [torch.tensor(x).cumsum(0) for x in batch["x"]], "y": batch["y"]}

    data = made()
    data.set_transform(transform)
    return data[:3], made().with_transform(transform)[0], list(DataLoader(data, batch_size=6))


@step("save_to_disk, load_from_disk, DatasetDict, parquet, json, csv")
def _():
    data = DatasetDict({"train": made(), "test": made(4)})
    data.save_to_disk("saved")
    again = datasets.load_from_disk("saved").with_format("torch")
    data["train"].to_parquet("train.parquet")
    data["test"].remove_columns(["x", "picture"]).to_csv("test.csv")
    data["test"].to_json("test.jsonl")
    parquet = datasets.load_dataset("parquet", data_files="train.parquet", split="train")
    csv = datasets.load_dataset("csv", data_files="test.csv", split="train")
    lines = datasets.load_dataset("json", data_files={"t": "test.jsonl"}, split="t[:50%]")
    return (
        again["train"]["x"][:],
        parquet.with_format("torch")["x"][:],
        csv.with_format("torch")["y"][:],
        lines.with_format("torch")["picture"][:],
    )


@step("an iterable dataset: map, filter, shuffle, take, state, in a DataLoader")
def _():
    def generate(start):
        for i in range(start, start + 8):
            yield {"x": [float(i), i / 2], "i": i}

    data = IterableDataset.from_generator(generate, gen_kwargs={"start": 2}).with_format("torch")
    mapped = data.map(lambda row: {"s": row["x"].sum()}).filter(lambda row: row["i"] % 2 == 0)
    streamed = made().to_iterable_dataset(num_shards=2).with_format("torch")
    shuffled = streamed.shuffle(seed=1, buffer_size=4)
    loader = DataLoader(streamed.select_columns(["x", "y"]), batch_size=4, num_workers=2)
    it = iter(data)
    next(it), next(it)
    state = data.state_dict()
    data.load_state_dict(state)
    return (
        list(mapped),
        [row["y"] for row in shuffled.take(5)],
        list(loader),
        list(data.skip(6)),
        [row["i"] for row in data],
        list(data.batch(3)),
    )


@step("concatenate, interleave, from tensors, from a pandas frame, from a list")
def _():
    import pandas

    a = Dataset.from_dict({"x": torch.arange(6.0).reshape(3, 2)})
    b = Dataset.from_list([{"x": torch.tensor([9.0, 8.0])}, {"x": torch.tensor([7.0, 6.0])}])
    c = Dataset.from_pandas(pandas.DataFrame({"y": [1, 2, 3]}))
    return (
        datasets.concatenate_datasets([a, b]).with_format("torch")["x"][:],
        datasets.interleave_datasets([a, b], probabilities=[0.5, 0.5], seed=0).with_format("torch")[
            "x"
        ][:],
        datasets.concatenate_datasets([a, c], axis=1).with_format("torch")[1],
    )


@step("dtypes: bool, float16, bfloat16 in, int8, uint8, dates, None, ragged")
def _():
    data = Dataset.from_dict(
        {
            "b": [True, False],
            "h": np.ones((2, 2), np.float16),
            "i": np.ones(2, np.int8),
            "u": np.ones((2, 2), np.uint8),
            "r": [[1, 2], [3]],
            "n": [None, "text"],
            "nested": [{"a": [1.5]}, {"a": [2.5]}],
        }
    ).with_format("torch")
    mapped = data.map(lambda row: {"bf": torch.ones(2, dtype=torch.bfloat16) * 1.5})
    types = {k: str(v.dtype) for k, v in data[0].items() if isinstance(v, torch.Tensor)}
    return types, data[:], mapped["bf"][:]


@step("pictures as tensors")
def _():
    from PIL import Image

    pictures = [Image.fromarray(np.full((4, 5, 3), i * 20, np.uint8)) for i in range(3)]
    data = Dataset.from_dict({"image": pictures}).cast_column("image", datasets.Image())
    return data.with_format("torch")[:]["image"]


@step("splits for nodes; a distributed sampler")
def _():
    from datasets.distributed import split_dataset_by_node

    data = made().with_format("torch")
    parts = [split_dataset_by_node(data, rank=r, world_size=3)["y"][:] for r in range(3)]
    sampler = torch.utils.data.DistributedSampler(data, num_replicas=2, rank=1, seed=5)
    return parts, [
        batch["y"] for batch in DataLoader(data.select_columns("y"), sampler=sampler, batch_size=2)
    ]


@step("refused: a device that is not there", refused=True)
def _():
    return made().with_format("torch", device="cuda:0")[0]


@step("refused: a column that is not there", refused=True)
def _():
    made().set_format("torch", columns=["z"])


@step("refused: a format that is not known", refused=True)
def _():
    made().with_format("nothing")


@step("refused: rows of other lengths in a batch", refused=True)
def _():
    data = Dataset.from_dict({"r": [[1, 2], [3]]}).with_format("torch")
    list(DataLoader(data, batch_size=2))


@step("refused: a text column in a DataLoader's stack", refused=True)
def _():
    torch.stack([row["text"] for row in made().with_format("torch")])


@step("refused: a folder that is no dataset", refused=True)
def _():
    datasets.load_from_disk("./nowhere")


@step("refused: a tensor of complex numbers as a column", refused=True)
def _():
    made().with_format("torch").map(lambda row: {"c": torch.ones(2, dtype=torch.complex64)})
