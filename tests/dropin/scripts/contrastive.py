"""SimCLR: two augmented views, NT-Xent, LARS written as an Optimizer subclass, warm-up then cosine."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.optimizer import Optimizer, required
from torchvision import transforms


class LARS(Optimizer):
    def __init__(self, params, lr=required, momentum=.9, weight_decay=1e-4, eta=0.001):
        if lr is not required and lr < 0.0:
            raise ValueError("Invalid learning rate: {}".format(lr))
        super(LARS, self).__init__(params, dict(
            lr=lr, momentum=momentum, weight_decay=weight_decay, eta=eta))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                d_p = p.grad
                weight_norm, grad_norm = torch.norm(p), torch.norm(d_p)
                local_lr = torch.where(
                    (weight_norm > 0) & (grad_norm > 0),
                    group['eta'] * weight_norm / (grad_norm + group['weight_decay'] * weight_norm),
                    torch.ones_like(weight_norm))
                state = self.state[p]
                if 'momentum_buffer' not in state:
                    buf = state['momentum_buffer'] = torch.zeros_like(p)
                else:
                    buf = state['momentum_buffer']
                buf.mul_(group['momentum']).add_(
                    d_p + group['weight_decay'] * p, alpha=float(local_lr * group['lr']))
                p.add_(-buf)
        return loss


class Encoder(nn.Module):
    def __init__(self, out_dim=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish(),
            nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.Mish(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, out_dim))

    def forward(self, x):
        return F.normalize(self.projector(self.backbone(x)), dim=1)


def info_nce_loss(features, n_views=2, temperature=0.2):
    batch = features.shape[0] // n_views
    labels = torch.cat([torch.arange(batch) for _ in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    return logits / temperature, torch.zeros(logits.shape[0], dtype=torch.long)


torch.manual_seed(11)
augment = transforms.Compose([
    transforms.RandomResizedCrop(12, scale=(0.5, 1.0), antialias=True),
    transforms.RandomHorizontalFlip(),
    transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
    transforms.RandomGrayscale(p=0.2),
    transforms.Normalize((0.5,) * 3, (0.25,) * 3),
])
model = Encoder()
optimizer = LARS(model.parameters(), lr=20.0)
scheduler = SequentialLR(optimizer, [
    LinearLR(optimizer, start_factor=0.1, total_iters=5), CosineAnnealingLR(optimizer, 17)], milestones=[5])
images = torch.rand(16, 3, 16, 16)
for step in range(20):
    views = torch.cat([torch.stack([augment(image) for image in images]) for _ in range(2)])
    logits, labels = info_nce_loss(model(views))
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, round(loss.item(), 5), 'top1', (logits.argmax(1) == 0).float().mean().item(),
          'lr', round(scheduler.get_last_lr()[0], 5), 'log', round(math.log(31), 3))
