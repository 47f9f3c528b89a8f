"""Super-resolution by sub-pixel convolution: orthogonal initial weights, PixelShuffle, PSNR."""
from math import log10

import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain('relu'))
        init.orthogonal_(self.conv2.weight, init.calculate_gain('relu'))
        init.orthogonal_(self.conv3.weight, init.calculate_gain('relu'))
        init.orthogonal_(self.conv4.weight)


class Waves(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        grid = torch.linspace(0, 1, 16)
        y, x = torch.meshgrid(grid, grid, indexing='ij')
        f = torch.rand(count, 2, 1, 1, generator=generator) * 9
        self.images = (torch.sin(f[:, 0] * x) * torch.cos(f[:, 1] * y)).unsqueeze(1)

    def __getitem__(self, index):
        target = self.images[index]
        input = nn.functional.interpolate(
            target[None], scale_factor=0.5, mode='bicubic', align_corners=False)[0]
        return input, target

    def __len__(self):
        return self.images.shape[0]


torch.manual_seed(123)
training = DataLoader(dataset=Waves(40, 1), num_workers=0, batch_size=4, shuffle=True)
testing = DataLoader(dataset=Waves(8, 2), num_workers=0, batch_size=4, shuffle=False)
model = Net(upscale_factor=2)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
for epoch in range(1, 3):
    epoch_loss = 0
    for iteration, batch in enumerate(training, 1):
        input, target = batch[0], batch[1]
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        print("===> Epoch[{}]({}/{}): Loss: {:.6f}".format(
            epoch, iteration, len(training), loss.item()))
    with torch.no_grad():
        psnr = sum(10 * log10(1 / criterion(model(i), t).item()) for i, t in testing)
    print("===> Avg. PSNR: {:.4f} dB".format(psnr / len(testing)))
