"""A siamese network: two towers that share weights, pairs drawn by `random`, BCE on the distance."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.PReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.ELU(),
            nn.AdaptiveAvgPool2d((2, 2)),
        )
        self.fc = nn.Sequential(nn.Linear(2 * 64, 24), nn.ReLU(inplace=True), nn.Linear(24, 1))
        self.sigmoid = nn.Sigmoid()
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        output = self.features(x)
        return output.view(output.size()[0], -1)

    def forward(self, input1, input2):
        output = torch.cat((self.forward_once(input1), self.forward_once(input2)), 1)
        return self.sigmoid(self.fc(output))


class Pairs(Dataset):
    def __init__(self, count):
        self.targets = torch.arange(count) % 5
        base = torch.randn(5, 1, 12, 12)
        self.data = base[self.targets] + 0.5 * torch.randn(count, 1, 12, 12)
        self.groups = {c: torch.where(self.targets == c)[0].tolist() for c in range(5)}

    def __len__(self):
        return self.data.shape[0]

    def __getitem__(self, index):
        chosen = random.randint(0, 4)
        first = random.choice(self.groups[chosen])
        if index % 2 == 0:
            return self.data[first], self.data[random.choice(self.groups[chosen])], torch.tensor(1.)
        other = random.choice([c for c in self.groups if c != chosen])
        return self.data[first], self.data[random.choice(self.groups[other])], torch.tensor(0.)


random.seed(2)
torch.manual_seed(2)
loader = DataLoader(Pairs(100), shuffle=True, batch_size=10, drop_last=True)
model = SiameseNetwork()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
scheduler = ExponentialLR(optimizer, gamma=0.7)
criterion = nn.BCELoss()
contrast = nn.CosineEmbeddingLoss(margin=0.2)
for epoch in range(2):
    for batch_idx, (images_1, images_2, targets) in enumerate(loader):
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets)
        one, two = model.forward_once(images_1), model.forward_once(images_2)
        loss = loss + 0.1 * contrast(one, two, targets * 2 - 1)
        loss = loss + 0.01 * F.pairwise_distance(one, two).mean()
        loss.backward()
        optimizer.step()
        accuracy = (outputs > 0.5).eq(targets.bool()).float().mean()
        print(f'{epoch} {batch_idx} loss {loss:.5f} accuracy {accuracy:.2f}')
    scheduler.step()
    print('lr', scheduler.get_last_lr())
