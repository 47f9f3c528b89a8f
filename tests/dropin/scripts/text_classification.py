"""Text as bags of words: EmbeddingBag with offsets, a collate function, an iterable dataset, StepLR."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torch.utils.data.dataset import random_split

torch.manual_seed(0)
random.seed(0)
WORDS = {0: "goal match team score ball league".split(), 1: "market stock price trade bank fund".split(),
         2: "star planet orbit moon rocket space".split()}
COMMON = "the a of to and in on it was said new".split()


def tokenizer(line):
    return line.lower().split()


def make(count):
    for _ in range(count):
        label = random.randrange(3)
        yield label, ' '.join(random.choice(WORDS[label] if random.random() < .4 else COMMON)
                              for _ in range(random.randint(4, 10)))


rows = list(make(160))
vocab = {word: i for i, word in enumerate(sorted({w for _, t in rows for w in tokenizer(t)}))}


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for _label, _text in batch:
        label_list.append(int(_label))
        processed_text = torch.tensor([vocab[w] for w in tokenizer(_text)], dtype=torch.int64)
        text_list.append(processed_text)
        offsets.append(processed_text.size(0))
    label_list = torch.tensor(label_list, dtype=torch.int64)
    offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
    return label_list, torch.cat(text_list), offsets


class Stream(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        info = get_worker_info()
        step = 1 if info is None else info.num_workers
        yield from self.rows[(0 if info is None else info.id)::step]


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super(TextClassificationModel, self).__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


if __name__ == '__main__':
    model = TextClassificationModel(len(vocab), 16, 3)
    print(model)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.5)
    split_train_, split_valid_ = random_split(rows, [128, 32])
    train = DataLoader(split_train_, batch_size=8, shuffle=True, collate_fn=collate_batch)
    stream = DataLoader(Stream(rows[:48]), batch_size=8, collate_fn=collate_batch, num_workers=2)
    for epoch, loader in enumerate((train, stream)):
        model.train()
        for idx, (label, text, offsets) in enumerate(loader):
            optimizer.zero_grad()
            predicted_label = model(text, offsets)
            loss = criterion(predicted_label, label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            correct = (predicted_label.argmax(1) == label).sum().item()
            print('| epoch {:3d} | {:5d}/{:5d} batches | loss {:8.5f} accuracy {:8.3f}'.format(
                epoch, idx, len(train), loss.item(), correct / label.size(0)))
        scheduler.step()
