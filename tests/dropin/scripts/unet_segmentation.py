"""A U-Net: double convolutions, skip connections padded and joined, Dice and cross entropy, plateau."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, random_split


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True)
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = Down(4, 8)
        self.down2 = Down(8, 16 // factor)
        self.up1 = Up(16, 8 // factor, bilinear)
        self.up2 = Up(8, 4, bilinear)
        self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_coeff(input: Tensor, target: Tensor, reduce_batch_first: bool = False, epsilon: float = 1e-6):
    sum_dim = (-1, -2) if input.dim() == 2 or not reduce_batch_first else (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


class Discs(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(idx)
        cy, cx, r = (torch.rand(3, generator=g) * torch.tensor([18., 18., 4.])) + 2
        y, x = torch.meshgrid(torch.arange(21.), torch.arange(22.), indexing='ij')
        mask = ((y - cy) ** 2 + (x - cx) ** 2 < r ** 2).long()
        image = mask.float()[None].repeat(3, 1, 1) + 0.3 * torch.randn(3, 21, 22, generator=g)
        return {'image': image, 'mask': mask}


torch.manual_seed(0)
dataset = Discs()
train_set, val_set = random_split(dataset, [32, 8], generator=torch.Generator().manual_seed(0))
loader_args = dict(batch_size=4, num_workers=0, pin_memory=False)
train_loader = DataLoader(train_set, shuffle=True, **loader_args)
val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **loader_args)
for bilinear in (False, True):
    model = UNet(3, 2, bilinear).to(memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(
        model.parameters(), lr=1e-4, weight_decay=1e-8, momentum=0.9, foreach=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'max', patience=0)
    grad_scaler = torch.cuda.amp.GradScaler(enabled=False)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        model.train()
        for batch in train_loader:
            images, true_masks = batch['image'], batch['mask']
            images = images.to(dtype=torch.float32, memory_format=torch.channels_last)
            with torch.autocast('cpu', enabled=False):
                masks_pred = model(images)
                loss = criterion(masks_pred, true_masks)
                loss += 1 - dice_coeff(
                    F.softmax(masks_pred, dim=1).float().flatten(0, 1),
                    F.one_hot(true_masks, 2).permute(0, 3, 1, 2).float().flatten(0, 1),
                    reduce_batch_first=True)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            grad_scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            print('loss (batch)', loss.item())
        model.eval()
        with torch.inference_mode():
            score = sum(dice_coeff(model(b['image']).softmax(dim=1)[:, 1], b['mask'].float())
                        for b in val_loader) / len(val_loader)
        scheduler.step(score)
        print('dice', score.item(), 'lr', optimizer.param_groups[0]['lr'])
